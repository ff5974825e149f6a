"""The life of a row: trash, restore, purge, and the keyword index that follows at once."""

from __future__ import annotations

import uuid

import pytest

from engine.types import Mode
from memory import wiring
from memory.errors import Conflict, NotFound
from memory.models import Memory, MemoryRevision, Passage
from memory.principal import Principal
from memory.services import housekeeping, listing, memories
from memory.services.settings import update_qdrant
from memory.tests.asking import ask, days_ago
from memory.tests.conftest import Remember, Work


def test_store_04_deleting_twice_finds_nothing_the_second_time(
    alice: Principal, remember: Remember
) -> None:
    memory = remember(alice, "likes tea")
    memories.delete(alice, memory.pk)
    with pytest.raises(NotFound):
        memories.delete(alice, memory.pk)
    with pytest.raises(NotFound):
        memories.get(alice, memory.pk)


def test_store_17_a_store_elsewhere_that_is_down_never_blocks_a_delete(
    alice: Principal, manager: Principal, remember: Remember
) -> None:
    update_qdrant(manager, {"enabled": True, "host": "qdrant.invalid"})
    memory = remember(alice, "likes tea")
    memories.delete(alice, memory.pk)
    assert ask(alice, "tea") == []


def test_a_trashed_memory_is_out_of_both_indexes_at_once(
    alice: Principal, remember: Remember, work: Work
) -> None:
    memory = remember(alice, "likes tea")
    work()
    assert ask(alice, "tea", mode=Mode.VECTOR) == ["likes tea"]
    memories.delete(alice, memory.pk)
    assert [ask(alice, "tea", mode=mode) for mode in Mode] == [[], [], [], []]
    assert wiring.keyword_index().count() == 0
    assert Passage.objects.count() == 0


def test_restore_brings_the_memory_back_into_both_indexes(
    alice: Principal, remember: Remember, work: Work
) -> None:
    memory = remember(alice, "likes tea")
    work()
    memories.delete(alice, memory.pk)
    memories.restore(alice, memory.pk)
    work()
    assert [ask(alice, "tea", mode=mode) for mode in Mode] == [["likes tea"]] * 4


def test_restore_is_a_conflict_when_the_key_was_taken_meanwhile(
    alice: Principal, remember: Remember
) -> None:
    memory = remember(alice, "likes tea", key="drink")
    memories.delete(alice, memory.pk)
    remember(alice, "likes coffee", key="drink")
    with pytest.raises(Conflict) as refused:
        memories.restore(alice, memory.pk)
    assert (refused.value.status, refused.value.code) == (409, "key_taken")
    assert ask(alice, "tea coffee") == ["likes coffee"]


def test_restoring_a_live_memory_changes_nothing(alice: Principal, remember: Remember) -> None:
    memory = remember(alice, "likes tea")
    memories.restore(alice, memory.pk)
    assert ask(alice, "tea") == ["likes tea"]


def test_purge_erases_the_memory_and_its_history(alice: Principal, remember: Remember) -> None:
    memory = remember(alice, "likes tea", key="k")
    remember(alice, "likes coffee", key="k")
    memories.delete(alice, memory.pk, purge=True)
    assert (Memory.objects.count(), MemoryRevision.objects.count()) == (0, 0)
    assert wiring.keyword_index().count() == 0


def test_purge_also_erases_what_is_in_the_trash(alice: Principal, remember: Remember) -> None:
    memory = remember(alice, "likes tea")
    memories.delete(alice, memory.pk)
    memories.delete(alice, memory.pk, purge=True)
    assert not Memory.objects.exists()


def test_the_trash_is_listed_and_its_history_can_be_read(
    alice: Principal, remember: Remember
) -> None:
    memory = remember(alice, "likes tea", key="k")
    remember(alice, "likes coffee", key="k")
    memories.delete(alice, memory.pk)
    page = listing.list_page(alice, listing.MemoryFilter(state="trash"))
    assert [row.memory.pk for row in page.rows] == [memory.pk]
    assert page.rows[0].index_state == "off"
    assert [row.content for row in memories.history(alice, memory.pk)] == ["likes tea"]


def test_a_trashed_memory_can_be_neither_changed_nor_reverted(
    alice: Principal, remember: Remember
) -> None:
    memory = remember(alice, "likes tea", key="k")
    remember(alice, "likes coffee", key="k")
    memories.delete(alice, memory.pk)
    with pytest.raises(NotFound):
        memories.update(alice, memory.pk, {"content": "x"})
    with pytest.raises(NotFound):
        memories.revert(alice, memory.pk, 1)


def test_a_key_in_the_trash_is_free_again(alice: Principal, remember: Remember) -> None:
    first = remember(alice, "one", key="k")
    memories.delete(alice, first.pk)
    second = remember(alice, "two", key="k")
    assert second.pk != first.pk
    assert Memory.objects.filter(key="k").count() == 2


def test_the_trash_is_emptied_after_thirty_days(alice: Principal, remember: Remember) -> None:
    old, young = remember(alice, "old"), remember(alice, "young")
    for memory, days in ((old, 31), (young, 29)):
        memories.delete(alice, memory.pk)
        Memory.objects.filter(pk=memory.pk).update(trashed_at=days_ago(days))
    assert housekeeping.purge_trash() == 1
    assert list(Memory.objects.values_list("content", flat=True)) == ["young"]


@pytest.mark.parametrize("reference", ["", "not-an-id", str(uuid.UUID(int=0)), "\0", "1" * 400])
def test_an_id_that_is_none_is_not_found(alice: Principal, reference: str) -> None:
    with pytest.raises(NotFound):
        memories.get(alice, reference)
    with pytest.raises(NotFound):
        memories.delete(alice, reference)
