"""The keyword index follows every change at once, and nothing else rewrites it."""

from __future__ import annotations

import pytest

from memory import wiring
from memory.models import ApiKey, MemoryUse, Passage, PassageChange, VectorMark
from memory.principal import Principal
from memory.services import memories
from memory.services.drafts import MemoryDraft
from memory.services.retrieval import RetrieveRequest, retrieve
from memory.tests.asking import ask, contents, days_ago
from memory.tests.conftest import Remember, Work
from memory.tests.derived import keyword_rows


def test_fts_sync_01_a_new_memory_is_found_by_its_own_word(
    alice: Principal, remember: Remember
) -> None:
    remember(alice, "The password of the router is taped below it")
    assert ask(alice, "router") == ["The password of the router is taped below it"]


def test_fts_sync_02_uses_never_rewrite_the_keyword_index(
    alice: Principal, remember: Remember
) -> None:
    remember(alice, "likes tea")
    before, changes = keyword_rows(), PassageChange.objects.count()
    for _ in range(100):
        view = retrieve(alice, RetrieveRequest("tea"), purpose="client")
        assert contents(view) == ["likes tea"]
    assert MemoryUse.objects.get().access_count == 100
    assert keyword_rows() == before
    assert PassageChange.objects.count() == changes


def test_fts_sync_03_after_an_edit_only_the_new_word_finds_it(
    alice: Principal, remember: Remember
) -> None:
    memory = remember(alice, "the door is red", key="door")
    memories.update(alice, memory.pk, {"content": "the door is blue"})
    assert (ask(alice, "red"), ask(alice, "blue")) == ([], ["the door is blue"])


def test_reindex_07_new_metadata_needs_no_vector_but_changes_keyword_search(
    alice: Principal, remember: Remember, work: Work
) -> None:
    memory = remember(alice, "likes tea", key="drink", metadata={"place": "kitchen"})
    work()
    memories.update(alice, memory.pk, {"metadata": {"place": "veranda"}})
    assert VectorMark.objects.count() == 0
    assert (ask(alice, "kitchen"), ask(alice, "veranda")) == ([], ["likes tea"])


@pytest.mark.parametrize(
    "change",
    [
        {"is_pinned": True},
        {"expires_at": days_ago(-9)},
        {"session_id": "s2"},
        {"type": "episodic"},
        {"occurred_at": days_ago(5)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_change_of_scope_rewrites_no_index(
    alice: Principal, remember: Remember, work: Work, change: dict[str, object]
) -> None:
    memory = remember(alice, "likes tea")
    work()
    before = keyword_rows()
    memories.update(alice, memory.pk, change)
    assert keyword_rows() == before
    assert VectorMark.objects.count() == 0


def test_an_edit_of_the_text_or_the_key_needs_a_new_vector(
    alice: Principal, remember: Remember, work: Work
) -> None:
    memory = remember(alice, "likes tea", key="drink")
    work()
    memories.update(alice, memory.pk, {"key": "beverage"})
    assert VectorMark.objects.count() == 1
    work()
    memories.update(alice, memory.pk, {"content": "likes cocoa"})
    assert VectorMark.objects.count() == 1


def test_a_text_that_grows_and_shrinks_leaves_no_passage_behind(
    alice: Principal, remember: Remember
) -> None:
    memory = remember(alice, "short", key="text")
    sentence = "The long tale of the river goes on. "
    memories.update(alice, memory.pk, {"content": sentence * 100 + "zebra"})
    many = Passage.objects.count()
    assert many > 3
    assert wiring.keyword_index().count() == many
    assert len(ask(alice, "zebra")) == 1
    memories.update(alice, memory.pk, {"content": "short again"})
    assert (Passage.objects.count(), wiring.keyword_index().count()) == (1, 1)
    assert ask(alice, "zebra") == []


def test_a_deleted_owner_row_takes_its_passages_out_of_the_keyword_index(
    alice: Principal, remember: Remember
) -> None:
    memory = remember(alice, "likes tea")
    memory.delete()
    assert wiring.keyword_index().count() == 0


def test_a_change_that_is_rolled_back_leaves_the_index_as_it_was(
    alice: Principal, remember: Remember
) -> None:
    remember(alice, "likes tea", key="a")
    memory = remember(alice, "likes cocoa", key="b")
    with pytest.raises(Exception, match="key"):
        memories.update(alice, memory.pk, {"content": "likes juice", "key": "a"})
    assert (ask(alice, "juice"), ask(alice, "cocoa")) == ([], ["likes cocoa"])


def test_a_batch_is_indexed_whole(alice: Principal) -> None:
    owner = ApiKey.objects.get(name="alice")
    drafts = [MemoryDraft(f"note number{place}", f"k{place}") for place in range(300)]
    memories.store_many(alice, owner, drafts)
    assert wiring.keyword_index().count() == 300
    assert ask(alice, "number299") == ["note number299"]


def test_each_passage_that_is_stored_or_changed_is_logged_once(
    alice: Principal, remember: Remember
) -> None:
    def logged() -> list[int]:
        before = list(PassageChange.objects.order_by("pk").values_list("passage_id", flat=True))
        PassageChange.objects.all().delete()
        return before

    memory = remember(alice, "likes jasmine tea")
    passage = Passage.objects.get(memory=memory)
    assert logged() == [passage.pk]
    memories.update(alice, memory.pk, {"content": "likes green tea"})
    assert logged() == [passage.pk]
    memories.update(alice, memory.pk, {"is_pinned": True})
    assert logged() == [passage.pk]
