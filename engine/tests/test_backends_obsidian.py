"""Obsidian through its Local REST API, over a double of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from engine.backends.obsidian import ObsidianBackend
from engine.backends.rest import Address, Rest
from engine.errors import BackendFailed
from engine.net.client import HttpClient
from engine.protocols import MemoryBackend
from engine.records import Changes, Draft, Filter, Search
from engine.testing.contracts_backend_faults import BackendFaultsContract, Served
from engine.testing.contracts_backends import BackendContract
from engine.testing.fake_obsidian import KEY, FakeObsidian
from engine.testing.fake_provider import Answer, Provider, serving


@pytest.fixture
def provider() -> Iterator[Provider]:
    """A plugin with an empty vault."""
    with serving() as running:
        running.respond = FakeObsidian()
        yield running


@pytest.fixture
def vault(provider: Provider) -> FakeObsidian:
    """The vault behind the plugin."""
    assert isinstance(provider.respond, FakeObsidian)
    return provider.respond


def backend_at(provider: Provider, folder: str = "Memories", key: str = KEY) -> ObsidianBackend:
    """A backend that speaks to the double."""
    address = Address(f"http://127.0.0.1:{provider.port}", {"Authorization": f"Bearer {key}"}, 5000)
    rest = Rest(address, HttpClient(wait=lambda _s: None), wait=lambda _s: None)
    return ObsidianBackend("obsidian", "Obsidian", rest, folder)


class TestContract(BackendContract):
    @pytest.fixture
    def backend(self, provider: Provider) -> MemoryBackend:
        """A folder in the vault."""
        return backend_at(provider)


class TestContractOfAWholeVault(BackendContract):
    @pytest.fixture
    def backend(self, provider: Provider) -> MemoryBackend:
        """The vault itself."""
        return backend_at(provider, folder="")


class TestFaults(BackendFaultsContract):
    @pytest.fixture
    def served(self, provider: Provider) -> Served:
        """The plugin with scripted faults."""
        waits: list[float] = []
        headers = {"Authorization": f"Bearer {KEY}"}
        address = Address(f"http://127.0.0.1:{provider.port}", headers, 5000)

        def made(timeout_ms: int) -> ObsidianBackend:
            client = HttpClient(wait=waits.append)
            rest = Rest(replace(address, timeout_ms=timeout_ms), client, wait=waits.append)
            return ObsidianBackend("obsidian", "Obsidian", rest)

        return Served(made(5000), provider, lambda: made(300), waits)


def test_obsidian_backend_01_a_key_that_is_a_path_stays_in_the_folder(
    provider: Provider, vault: FakeObsidian
) -> None:
    made = backend_at(provider).create(Draft("../../etc/x", "text"))
    assert list(vault.files) == [f"Memories/{made.id}"]
    assert "/" not in made.id


@pytest.mark.parametrize("record_id", ["../x.md", "a/../../x.md", ".obsidian/app.md", "/x.md"])
def test_a_path_that_leaves_the_folder_is_refused_before_anything_is_sent(
    provider: Provider, record_id: str
) -> None:
    made = backend_at(provider)
    for call in (made.get, made.delete, lambda path: made.update(path, Changes(content="x"))):
        with pytest.raises(BackendFailed) as failed:
            call(record_id)
        assert failed.value.code == "outside_vault"
    assert provider.requests == []


@pytest.mark.parametrize("folder", ["../x", "/x", "a/../../b", ".obsidian", "a\\..\\b", "a\0b"])
def test_a_folder_that_leaves_the_vault_is_refused(provider: Provider, folder: str) -> None:
    with pytest.raises(BackendFailed):
        backend_at(provider, folder=folder)


def test_notes_that_people_wrote_are_memories(provider: Provider, vault: FakeObsidian) -> None:
    vault.put("Memories/People/Ada.md", "---\ntags: [person]\n---\nAda likes tea\n")
    vault.put("Memories/plain.md", "no front matter")
    vault.put("Elsewhere/x.md", "tea outside of the folder")
    vault.put("Memories/picture.png", "tea")
    made = backend_at(provider)
    found = {record.id: record for record in made.list_records(Filter()).data}
    assert set(found) == {"People/Ada.md", "plain.md"}
    assert (found["People/Ada.md"].key, found["People/Ada.md"].content) == (
        "People/Ada",
        "Ada likes tea\n",
    )
    assert [record.id for record in made.search(Search("tea"))] == ["People/Ada.md"]


def test_an_update_keeps_what_others_wrote_in_front(
    provider: Provider, vault: FakeObsidian
) -> None:
    vault.put("Memories/Ada.md", "---\ntags: [person, tea]\naliases: Lady Lovelace\n---\nold")
    assert backend_at(provider).update("Ada.md", Changes(content="new", type="episodic"))
    text = vault.files["Memories/Ada.md"]
    assert 'tags: ["person", "tea"]' in text
    assert 'aliases: "Lady Lovelace"' in text
    assert text.endswith("---\nnew")


def test_a_new_note_never_lies_over_one_that_differs_in_case_only(
    provider: Provider, vault: FakeObsidian
) -> None:
    first = backend_at(provider).create(Draft("Tea", "one"))
    vault.files[f"Memories/{first.id.upper().removesuffix('.MD')}.md"] = vault.files.pop(
        f"Memories/{first.id}"
    )
    backend_at(provider).create(Draft("Tea", "two"))
    assert len(vault.files) == 2


def test_a_wrong_key_is_told_as_one(provider: Provider) -> None:
    health = backend_at(provider, key="other").health()
    assert (health.available, health.detail["code"]) == (False, "no_key")


def test_another_server_on_the_port_is_not_taken_for_obsidian(provider: Provider) -> None:
    provider.script = [Answer(200, b'{"hello": "world"}')]
    health = backend_at(provider).health()
    assert (health.available, health.detail["code"]) == (False, "invalid_response")


def test_a_search_passes_over_names_that_lead_elsewhere(
    provider: Provider, vault: FakeObsidian
) -> None:
    vault.put("Memories/../secret.md", "tea")
    vault.put("Memories/.hidden/x.md", "tea")
    vault.put("Memories/fine.md", "tea")
    assert [record.id for record in backend_at(provider).search(Search("tea"))] == ["fine.md"]
