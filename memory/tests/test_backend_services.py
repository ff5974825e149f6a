"""Obsidian as primary with Notion behind it, through the services."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from engine.testing import fake_notion, fake_obsidian
from engine.testing.fake_notion import FakeNotion
from engine.testing.fake_obsidian import FakeObsidian
from engine.testing.fake_provider import serving
from memory.models import BackendCopy
from memory.principal import SYSTEM, Principal
from memory.services import memories
from memory.services.backends import transfers
from memory.tests.asking import ask
from memory.tests.backends import configure, copy_of
from memory.tests.conftest import Remember, Work


@dataclass(frozen=True, slots=True)
class World:
    """The vault and the database behind the two doubles."""

    vault: FakeObsidian
    notion: FakeNotion

    @property
    def texts(self) -> list[str]:
        """The texts of the pages that are not in the trash."""
        return [
            page["properties"]["Content"]["rich_text"][0]["plain_text"]
            for page in self.notion.pages.values()
            if not page["archived"]
        ]


@pytest.fixture
def world(first_start: None) -> Iterator[World]:
    """Obsidian is primary, Notion its fallback."""
    with serving() as one, serving() as two:
        one.respond = vault = FakeObsidian()
        two.respond = notion = FakeNotion()
        obsidian = {"baseUrl": f"http://127.0.0.1:{one.port}", "apiKey": fake_obsidian.KEY}
        database = {
            "baseUrl": f"http://127.0.0.1:{two.port}/v1",
            "allowLoopback": True,
            "apiKey": fake_notion.KEY,
            "databaseId": fake_notion.DATABASE,
        }
        configure(
            "obsidian", ["notion"], obsidian={**obsidian, "folder": "Memories"}, notion=database
        )
        yield World(vault, notion)


def test_a_memory_lives_in_the_vault_and_its_copy_in_notion_follows(
    world: World, alice: Principal, remember: Remember, work: Work
) -> None:
    memory = remember(alice, "likes tea", key="preference:tea")
    (path,) = world.vault.files
    assert path == f"Memories/{copy_of(memory, 'obsidian').own_id}"
    transfers.start(SYSTEM, "copy", "notion")
    work()
    assert world.texts == ["likes tea"]
    memories.update(alice, memory.pk, {"content": "likes coffee"})
    work()
    assert world.vault.files[path].endswith("---\nlikes coffee")
    assert world.texts == ["likes coffee"]
    memories.delete(alice, memory.pk)
    work()
    assert world.vault.files == {}
    assert world.texts == []


def test_what_people_write_in_the_vault_is_found_here(
    world: World, manager: Principal, work: Work
) -> None:
    world.vault.put("Memories/People/Ada.md", "---\ntags: [person]\n---\nAda likes green tea")
    transfers.resume()
    work()
    assert ask(manager, "green tea", owner="Default") == ["Ada likes green tea"]
    world.vault.put("Memories/People/Ada.md", "Ada likes black coffee")
    transfers.start(SYSTEM, "pull", "obsidian")
    work()
    assert ask(manager, "black coffee", owner="Default") == ["Ada likes black coffee"]


def test_when_the_vault_is_closed_notion_answers_a_read(
    world: World, alice: Principal, remember: Remember, work: Work
) -> None:
    memory = remember(alice, "likes tea")
    transfers.start(SYSTEM, "copy", "notion")
    work()
    page = next(iter(world.notion.pages.values()))
    page["properties"]["Content"]["rich_text"][0]["plain_text"] = "likes tea, says Notion"
    world.vault.key = "changed"
    assert memories.get(alice, memory.pk).content == "likes tea, says Notion"
    work()
    memory.refresh_from_db()
    assert memory.content == "likes tea"
    assert not BackendCopy.objects.exclude(pending="").exists()
