"""Fallbacks follow updates and deletes by their own ids, however long it takes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from memory.clock import now
from memory.models import BackendCopy, Job, Memory
from memory.principal import SYSTEM, Principal
from memory.services import compaction, memories
from memory.services.backends import following, transfers
from memory.tests.backends import Brain, brain, configure, copy_of
from memory.tests.conftest import Remember, Work


@pytest.fixture
def fallback(first_start: None) -> Iterator[Brain]:
    """A service that is a fallback behind our own tables."""
    with brain() as running:
        configure("sqlite", ["brain"], brain=running.config)
        yield running


@pytest.fixture
def copied(fallback: Brain, alice: Principal, remember: Remember, work: Work) -> Memory:
    """A memory that the fallback has a copy of."""
    memory = remember(alice, "likes tea")
    transfers.start(SYSTEM, "copy", "brain")
    work()
    return memory


def test_create_does_not_reach_a_fallback(
    fallback: Brain, alice: Principal, remember: Remember, work: Work
) -> None:
    remember(alice, "likes tea")
    work()
    assert fallback.contents == []


def test_an_update_reaches_the_fallbacks_own_id(
    fallback: Brain, alice: Principal, copied: Memory, work: Work
) -> None:
    memories.update(alice, copied.pk, {"content": "likes coffee"})
    assert fallback.contents == ["likes tea"]
    work()
    assert fallback.contents == ["likes coffee"]
    assert copy_of(copied).pending == ""


def test_an_upsert_by_key_reaches_it_too(
    fallback: Brain, alice: Principal, copied: Memory, remember: Remember, work: Work
) -> None:
    remember(alice, "likes coffee", key=copied.key)
    work()
    assert fallback.contents == ["likes coffee"]


def test_a_delete_reaches_the_fallbacks_own_id(
    fallback: Brain, alice: Principal, copied: Memory, work: Work
) -> None:
    memories.delete(alice, copied.pk)
    work()
    assert fallback.contents == []
    assert not BackendCopy.objects.exists()


def test_what_is_erased_for_good_is_erased_there(
    fallback: Brain, alice: Principal, copied: Memory, work: Work
) -> None:
    fallback.goes_down()
    memories.delete(alice, copied.pk, purge=True)
    work()
    fallback.comes_back()
    BackendCopy.objects.update(due_at=None)
    following.resume()
    work()
    assert fallback.contents == []


def test_a_memory_that_comes_back_before_it_was_deleted_there_stays(
    fallback: Brain, alice: Principal, copied: Memory, work: Work
) -> None:
    memories.delete(alice, copied.pk)
    memories.restore(alice, copied.pk)
    work()
    assert fallback.contents == ["likes tea"]


def test_a_fallback_that_is_down_hears_of_it_later(
    fallback: Brain, alice: Principal, copied: Memory, work: Work
) -> None:
    fallback.goes_down()
    memories.update(alice, copied.pk, {"content": "likes coffee"})
    work()
    copy = copy_of(copied)
    assert (copy.pending, copy.attempts, copy.error) == ("update", 1, "unreachable")
    assert copy.due_at is not None
    assert copy.due_at > now() + timedelta(seconds=50)
    following.resume()
    assert work() == 0
    fallback.comes_back()
    BackendCopy.objects.update(due_at=now())
    following.resume()
    work()
    assert fallback.contents == ["likes coffee"]


def test_the_pause_grows_with_every_failure(
    fallback: Brain, alice: Principal, copied: Memory, work: Work
) -> None:
    fallback.goes_down()
    memories.update(alice, copied.pk, {"content": "likes coffee"})
    pauses = []
    for _attempt in range(3):
        work()
        due = copy_of(copied).due_at
        assert due is not None
        pauses.append(round((due - now()).total_seconds() / 60))
        BackendCopy.objects.update(due_at=None)
        following.resume()
    assert pauses == [1, 2, 4]


def test_one_backend_that_is_down_does_not_hold_up_another(
    alice: Principal, remember: Remember, work: Work
) -> None:
    with brain() as one, brain() as two:
        configure("sqlite", ["one", "two"], one=one.config, two=two.config)
        memory = remember(alice, "likes tea")
        for name in ("one", "two"):
            transfers.start(SYSTEM, "copy", name)
        work()
        one.goes_down()
        memories.update(alice, memory.pk, {"content": "likes coffee"})
        work()
        assert (one.contents, two.contents) == (["likes tea"], ["likes coffee"])
        job = Job.objects.filter(kind="backend-follow").latest("finished_at")
        assert job.result == {"told": 1, "failed": {"one": "unreachable"}}


def test_a_copy_that_was_deleted_there_is_forgotten(
    fallback: Brain, alice: Principal, copied: Memory, work: Work
) -> None:
    fallback.service.rows.clear()
    memories.update(alice, copied.pk, {"content": "likes coffee"})
    work()
    assert not BackendCopy.objects.exists()


def test_an_earlier_primary_that_is_fallback_now_follows_by_its_own_id(
    alice: Principal, remember: Remember, work: Work
) -> None:
    with brain() as one, brain() as two:
        configure("one", one=one.config, two=two.config)
        memory = remember(alice, "likes tea")
        configure("two", ["one"], one=one.config, two=two.config)
        memories.update(alice, memory.pk, {"content": "likes coffee"})
        work()
        assert (one.contents, two.contents) == (["likes coffee"], ["likes coffee"])
        memories.delete(alice, memory.pk)
        work()
        assert (one.contents, two.contents) == ([], [])


def test_what_a_compaction_changes_is_told_to_the_primary_later(
    alice: Principal, remember: Remember, work: Work
) -> None:
    with brain() as running:
        configure("brain", brain=running.config)
        text = "One is here. Two is here. Three is here. Four is here."
        remember(alice, text)
        wanted = compaction.CompactRequest(kind="tokens", max_tokens=0)
        made = compaction.run_now(alice, wanted)
        work()
        assert running.contents != [text]
        compaction.undo(alice, str(made.compactions[0].pk))
        work()
        assert running.contents == [text]


def test_a_pull_from_a_fallback_takes_over_what_changed_there_and_trashes_nothing(
    fallback: Brain, alice: Principal, remember: Remember, work: Work
) -> None:
    changed, gone = remember(alice, "likes tea"), remember(alice, "likes cake")
    transfers.start(SYSTEM, "copy", "brain")
    work()
    fallback.service.rows[copy_of(changed).own_id]["content"] = "likes coffee"
    del fallback.service.rows[copy_of(gone).own_id]
    transfers.start(SYSTEM, "pull", "brain")
    work()
    live = Memory.objects.filter(trashed_at__isnull=True).values_list("content", flat=True)
    assert sorted(live) == ["likes cake", "likes coffee"]
    assert fallback.contents == ["likes coffee"]
