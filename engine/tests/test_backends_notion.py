"""Notion, over a double of the part of its API that a database of memories needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from engine.backends.notion import Database, NotionBackend
from engine.backends.notion_pages import Names
from engine.backends.rest import Address, Rest
from engine.errors import BackendFailed
from engine.net.client import HttpClient
from engine.protocols import MemoryBackend
from engine.records import Draft, Filter, Search
from engine.testing.contracts_backend_faults import BackendFaultsContract, Served
from engine.testing.contracts_backends import BackendContract
from engine.testing.fake_notion import DATABASE, KEY, VERSION, FakeNotion
from engine.testing.fake_provider import Provider, serving

HEADERS = {"Authorization": f"Bearer {KEY}", "Notion-Version": VERSION}


@pytest.fixture
def provider() -> Iterator[Provider]:
    """Notion with an empty database that answers two pages at a time."""
    with serving() as running:
        running.respond = FakeNotion(page_size=2)
        yield running


@pytest.fixture
def notion(provider: Provider) -> FakeNotion:
    """The database behind the double."""
    assert isinstance(provider.respond, FakeNotion)
    return provider.respond


def backend_at(
    provider: Provider, database: str = DATABASE, names: Names | None = None
) -> NotionBackend:
    """A backend that speaks to the double."""
    address = Address(f"http://127.0.0.1:{provider.port}/v1", HEADERS, 5000)
    rest = Rest(address, HttpClient(wait=lambda _s: None), wait=lambda _s: None)
    return NotionBackend("notion", "Notion", rest, Database(database, names or Names(), "carol"))


class TestContract(BackendContract):
    @pytest.fixture
    def backend(self, provider: Provider) -> MemoryBackend:
        """A database in small pages."""
        return backend_at(provider)


class TestFaults(BackendFaultsContract):
    @pytest.fixture
    def served(self, provider: Provider) -> Served:
        """Notion with scripted faults."""
        waits: list[float] = []
        address = Address(f"http://127.0.0.1:{provider.port}/v1", HEADERS, 5000)

        def made(timeout_ms: int) -> NotionBackend:
            client = HttpClient(wait=waits.append)
            rest = Rest(replace(address, timeout_ms=timeout_ms), client, wait=waits.append)
            return NotionBackend("notion", "Notion", rest, Database(DATABASE))

        return Served(made(5000), provider, lambda: made(300), waits)


def test_the_id_may_be_written_as_in_the_browsers_address(provider: Provider) -> None:
    made = backend_at(provider, database=DATABASE.replace("-", ""))
    assert made.get(made.create(Draft("a", "b")).id) is not None


def test_properties_may_have_other_names(provider: Provider, notion: FakeNotion) -> None:
    notion.schema["Text"] = notion.schema.pop("Content")
    made = backend_at(provider, names=Names(content="Text"))
    assert made.create(Draft("a", "green tea")).content == "green tea"
    assert [record.key for record in made.search(Search("tea"))] == ["a"]


def test_missing_properties_are_named(provider: Provider, notion: FakeNotion) -> None:
    del notion.schema["Owner"]
    notion.schema["Type"] = "rich_text"
    made = backend_at(provider)
    health = made.health()
    assert health.reason == "The database lacks properties: Type (select), Owner (rich_text)."
    with pytest.raises(BackendFailed):
        made.initialize()


def test_a_database_that_is_not_shared_is_told(provider: Provider) -> None:
    health = backend_at(provider, database="0" * 32).health()
    assert (health.available, health.detail["code"]) == (False, "not_found")


def test_pages_of_other_databases_are_not_ours(provider: Provider, notion: FakeNotion) -> None:
    made = backend_at(provider)
    page_id = made.create(Draft("a", "b")).id
    notion.pages[page_id]["parent"]["database_id"] = "0" * 32
    assert made.get(page_id) is None
    assert made.delete(page_id) is False
    assert notion.pages[page_id]["archived"] is False


def test_a_deleted_page_lies_in_notions_trash(provider: Provider, notion: FakeNotion) -> None:
    made = backend_at(provider)
    page_id = made.create(Draft("a", "b")).id
    assert made.delete(page_id)
    assert notion.pages[page_id]["archived"] is True
    assert made.list_records(Filter()).total == 0


@pytest.mark.parametrize("text", ["a" * 200_000, "😀" * 5_000, "字" * 4_001])
def test_long_texts_are_cut_into_pieces_and_joined_again(provider: Provider, text: str) -> None:
    made = backend_at(provider)
    found = made.get(made.create(Draft("long", text)).id)
    assert found is not None
    assert found.content == text


def test_a_text_that_notion_cannot_keep_is_refused_before_it_is_sent(provider: Provider) -> None:
    with pytest.raises(BackendFailed) as failed:
        backend_at(provider).create(Draft("long", "a" * 200_001))
    assert failed.value.code == "too_large"
    assert provider.requests == []


def test_pages_that_name_nobody_are_the_configured_owners(provider: Provider) -> None:
    made = backend_at(provider)
    made.create(Draft("a", "green tea"))
    made.create(Draft("b", "green tea", owner="alice"))
    assert [r.key for r in made.list_records(Filter(owner="carol")).data] == ["a"]
    assert [r.key for r in made.search(Search("tea", owner="alice"))] == ["b"]
    assert [r.owner for r in made.search(Search("tea", owner="carol"))] == ["carol"]
