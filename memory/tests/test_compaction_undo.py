"""Compaction by token budget, and the undo of both kinds."""

from __future__ import annotations

from typing import Any

import pytest

from memory.errors import Conflict, NotFound
from memory.models import Compaction, Memory
from memory.principal import Principal
from memory.services import compaction, memories
from memory.services.compaction import CompactRequest
from memory.tests.asking import ask, days_ago
from memory.tests.conftest import Remember

BUDGET = CompactRequest(kind="tokens", max_tokens=8)


def _compacted(principal: Principal, request: CompactRequest) -> Compaction:
    (made,) = compaction.run_now(principal, request).compactions
    return made


@pytest.fixture
def pair(alice: Principal, remember: Remember) -> Principal:
    """An old memory of four sentences, and a newer one."""
    remember(alice, "Ash. Birch. Cedar. Dogwood.", key="old", created_at=days_ago(2))
    remember(alice, "Up. Down. Left. Right.", key="new")
    return alice


def _texts() -> dict[str, str]:
    return dict(Memory.objects.order_by("key").values_list("key", "content"))


def test_summarise_session_01_without_memories_nothing_is_done(alice: Principal) -> None:
    assert compaction.preview(alice, BUDGET) == []


def test_summarise_session_02_what_overflows_the_budget_shrinks_to_its_first_sentences(
    pair: Principal,
) -> None:
    (plan,) = compaction.preview(pair, BUDGET)
    assert (plan.original_count, len(plan.candidates), plan.tokens_saved) == (2, 1, 2)
    assert plan.candidates[0].new_content == "Ash. Birch. Cedar."
    made = _compacted(pair, BUDGET)
    assert made.tokens_saved == 2
    assert _texts() == {"new": "Up. Down. Left. Right.", "old": "Ash. Birch. Cedar."}


def test_summarise_session_03_three_sentences_or_fewer_stay_and_still_count(
    alice: Principal, remember: Remember
) -> None:
    memory = remember(alice, "Uno. Dos. Tres.")
    request = CompactRequest(kind="tokens", max_tokens=0)
    (plan,) = compaction.preview(alice, request)
    assert (plan.original_count, len(plan.candidates), plan.tokens_saved) == (1, 1, 0)
    assert plan.changing == []
    assert _compacted(alice, request).rewritten == []
    assert memories.history(alice, memory.pk) == []


def test_summarise_session_04_another_session_is_untouched(
    alice: Principal, remember: Remember
) -> None:
    text = "Ash. Birch. Cedar. Dogwood."
    remember(alice, text, key="a", session_id="S1")
    remember(alice, text, key="b", session_id="S2")
    _compacted(alice, CompactRequest(kind="tokens", max_tokens=0, session="S1"))
    assert _texts() == {"a": "Ash. Birch. Cedar.", "b": text}


def test_summarise_session_05_without_a_session_every_one_of_the_owner_and_no_other_owner(
    alice: Principal, bob: Principal, remember: Remember
) -> None:
    text = "Ash. Birch. Cedar. Dogwood."
    remember(alice, text, key="a", session_id="S1")
    remember(alice, text, key="b", session_id="S2")
    remember(bob, text, key="c", session_id="S1")
    _compacted(alice, CompactRequest(kind="tokens", max_tokens=0, owner="bob"))
    assert _texts() == {"a": "Ash. Birch. Cedar.", "b": "Ash. Birch. Cedar.", "c": text}


def test_a_shortened_memory_keeps_its_earlier_text_and_is_searched_by_the_new_one(
    pair: Principal,
) -> None:
    _compacted(pair, BUDGET)
    memory = Memory.objects.get(key="old")
    earlier = memories.history(pair, memory.pk)
    assert [(row.content, row.action) for row in earlier] == [
        ("Ash. Birch. Cedar. Dogwood.", "compact")
    ]
    assert (ask(pair, "dogwood"), len(ask(pair, "cedar"))) == ([], 1)


def test_a_pinned_memory_is_not_shortened(alice: Principal, remember: Remember) -> None:
    remember(alice, "Ash. Birch. Cedar. Dogwood.", is_pinned=True)
    assert compaction.preview(alice, CompactRequest(kind="tokens", max_tokens=0)) == []


def test_undo_brings_shortened_texts_back(pair: Principal) -> None:
    before = _texts()
    made = _compacted(pair, BUDGET)
    compaction.undo(pair, str(made.pk))
    assert _texts() == before
    assert len(ask(pair, "dogwood")) == 1


@pytest.mark.parametrize("by_summary", [False, True], ids=["by compaction id", "by summary id"])
def test_undo_brings_archived_originals_back_and_trashes_the_summary(
    alice: Principal, remember: Remember, by_summary: bool
) -> None:
    for place in range(3):
        remember(alice, f"zebra {place}", created_at=days_ago(60))
    made = _compacted(alice, CompactRequest())
    undone = compaction.undo(alice, made.summary_ids[0] if by_summary else str(made.pk))
    assert undone.undone_at is not None
    assert sorted(ask(alice, "zebra")) == ["zebra 0", "zebra 1", "zebra 2"]
    assert Memory.objects.get(pk=made.summary_ids[0]).trashed_at is not None
    assert not Memory.objects.filter(archived_at__isnull=False).exists()


def test_undo_twice_is_a_conflict(alice: Principal, remember: Remember) -> None:
    remember(alice, "zebra", created_at=days_ago(60))
    made = _compacted(alice, CompactRequest())
    compaction.undo(alice, str(made.pk))
    with pytest.raises(Conflict) as refused:
        compaction.undo(alice, str(made.pk))
    assert (refused.value.status, refused.value.code) == (409, "already_undone")


def test_undo_is_a_conflict_when_a_key_was_taken_and_then_changes_nothing(
    alice: Principal, remember: Remember
) -> None:
    remember(alice, "zebra one", key="a", created_at=days_ago(60))
    remember(alice, "zebra two", key="b", created_at=days_ago(60))
    made = _compacted(alice, CompactRequest())
    remember(alice, "zebra three", key="b")
    with pytest.raises(Conflict) as refused:
        compaction.undo(alice, str(made.pk))
    assert refused.value.code == "key_taken"
    made.refresh_from_db()
    assert made.undone_at is None
    assert Memory.objects.get(pk=made.summary_ids[0]).trashed_at is None
    assert Memory.objects.filter(archived_by=made).count() == 2
    taken = Memory.objects.get(content="zebra three")
    memories.delete(alice, taken.pk)
    compaction.undo(alice, str(made.pk))
    assert len(ask(alice, "zebra")) == 2


def test_undo_after_the_summary_was_erased_still_brings_the_originals_back(
    alice: Principal, remember: Remember
) -> None:
    remember(alice, "zebra", created_at=days_ago(60))
    made = _compacted(alice, CompactRequest())
    memories.delete(alice, made.summary_ids[0], purge=True)
    compaction.undo(alice, str(made.pk))
    assert ask(alice, "zebra") == ["zebra"]


def test_an_archived_memory_can_be_brought_back_alone(alice: Principal, remember: Remember) -> None:
    memory = remember(alice, "zebra one", created_at=days_ago(60))
    remember(alice, "zebra two", created_at=days_ago(60))
    _compacted(alice, CompactRequest())
    memories.restore(alice, memory.pk)
    assert "zebra one" in ask(alice, "zebra")
    assert "zebra two" not in ask(alice, "zebra")


def test_an_archived_memory_that_was_trashed_comes_back_archived(
    alice: Principal, remember: Remember
) -> None:
    memory = remember(alice, "zebra", created_at=days_ago(60))
    _compacted(alice, CompactRequest())
    memories.delete(alice, memory.pk)
    assert memories.restore(alice, memory.pk).archived_at is not None
    assert [text for text in ask(alice, "zebra") if text == "zebra"] == []


@pytest.mark.parametrize("reference", ["", "nonsense", "00000000-0000-0000-0000-000000000000"])
def test_what_is_no_compaction_is_not_found(alice: Principal, reference: Any) -> None:
    with pytest.raises(NotFound):
        compaction.undo(alice, reference)


def test_undo_leaves_an_original_that_was_deleted_meanwhile_in_the_trash(
    alice: Principal, remember: Remember
) -> None:
    kept = remember(alice, "zebra kept", created_at=days_ago(60))
    gone = remember(alice, "zebra gone", created_at=days_ago(60))
    made = _compacted(alice, CompactRequest())
    memories.delete(alice, gone.pk)
    compaction.undo(alice, str(made.pk))
    assert ask(alice, "zebra") == [kept.content]
    memories.restore(alice, gone.pk)
    assert sorted(ask(alice, "zebra")) == ["zebra gone", "zebra kept"]
