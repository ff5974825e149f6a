"""A primary backend elsewhere holds the truth; our tables are its indexed mirror."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from engine.testing.fake_provider import Answer
from memory.clock import now
from memory.errors import NotFound, TierDown
from memory.models import AuditEntry, BackendCopy, Job, Memory
from memory.principal import SYSTEM, Principal
from memory.services import exchange, listing, memories
from memory.services.backends import transfers
from memory.services.drafts import MemoryDraft
from memory.tests.asking import ask
from memory.tests.backends import Brain, brain, configure, copy_of, uid
from memory.tests.conftest import Remember, Work


@pytest.fixture
def primary(first_start: None) -> Iterator[Brain]:
    """A service that is primary."""
    with brain() as running:
        configure("brain", brain=running.config)
        yield running


def test_while_our_own_tables_hold_the_truth_nobody_is_asked(
    alice: Principal, remember: Remember
) -> None:
    with brain() as running:
        configure("sqlite", brain=running.config)
        memory = remember(alice, "likes tea")
        memories.update(alice, memory.pk, {"content": "likes coffee"})
        memories.get(alice, memory.pk)
        listing.list_page(alice, listing.MemoryFilter())
        ask(alice, "coffee")
        memories.delete(alice, memory.pk)
        assert running.calls == []


def test_a_memory_is_stored_at_the_primary_and_mirrored_here(
    primary: Brain, alice: Principal, remember: Remember
) -> None:
    memory = remember(alice, "likes tea", key="tea", session_id="s1", metadata={"a": 1})
    (row,) = primary.service.rows.values()
    assert (row["key"], row["content"], row["apiKeyId"]) == ("tea", "likes tea", uid(alice))
    assert (row["sessionId"], row["metadata"]) == ("s1", {"a": 1})
    assert copy_of(memory).own_id == row["id"]


def test_what_the_primary_refuses_is_not_stored_here(primary: Brain, alice: Principal) -> None:
    primary.goes_down()
    with pytest.raises(TierDown) as refused:
        memories.create(alice, MemoryDraft("likes tea", "tea"))
    assert refused.value.code == "backend_unreachable"
    assert not Memory.objects.exists()


def test_a_known_key_is_changed_at_the_primary_and_its_metadata_merged(
    primary: Brain, alice: Principal, remember: Remember
) -> None:
    remember(alice, "likes tea", key="tea", metadata={"a": 1})
    remember(alice, "likes coffee", key="tea", metadata={"b": 2})
    (row,) = primary.service.rows.values()
    assert (row["content"], row["metadata"]) == ("likes coffee", {"a": 1, "b": 2})


def test_an_update_reaches_the_primarys_own_id(
    primary: Brain, alice: Principal, remember: Remember
) -> None:
    memory = remember(alice, "likes tea")
    memories.update(alice, memory.pk, {"content": "likes coffee", "session_id": "s2"})
    (row,) = primary.service.rows.values()
    assert (row["content"], row["sessionId"]) == ("likes coffee", "s2")
    assert Memory.objects.get().content == "likes coffee"


def test_an_update_that_the_primary_refuses_changes_nothing_here(
    primary: Brain, alice: Principal, remember: Remember
) -> None:
    memory = remember(alice, "likes tea")
    primary.goes_down()
    with pytest.raises(TierDown):
        memories.update(alice, memory.pk, {"content": "likes coffee"})
    assert Memory.objects.get().content == "likes tea"


def test_a_pin_is_ours_and_needs_no_call(
    primary: Brain, alice: Principal, remember: Remember
) -> None:
    memory = remember(alice, "likes tea")
    before = len(primary.calls)
    memories.update(alice, memory.pk, {"is_pinned": True})
    assert len(primary.calls) == before
    assert Memory.objects.get().is_pinned


def test_what_is_deleted_is_deleted_at_the_primary_and_comes_back_there(
    primary: Brain, alice: Principal, remember: Remember
) -> None:
    memory = remember(alice, "likes tea")
    memories.delete(alice, memory.pk)
    assert primary.contents == []
    assert not BackendCopy.objects.exists()
    memories.restore(alice, memory.pk)
    assert primary.contents == ["likes tea"]
    assert copy_of(memory).own_id in primary.service.rows


def test_a_delete_that_the_primary_refuses_leaves_the_memory(
    primary: Brain, alice: Principal, remember: Remember
) -> None:
    memory = remember(alice, "likes tea")
    primary.goes_down()
    with pytest.raises(TierDown):
        memories.delete(alice, memory.pk)
    assert Memory.objects.get().trashed_at is None


def test_an_earlier_text_comes_back_at_the_primary(
    primary: Brain, alice: Principal, remember: Remember
) -> None:
    memory = remember(alice, "likes tea")
    memories.update(alice, memory.pk, {"content": "likes coffee"})
    memories.revert(alice, memory.pk, 1)
    assert primary.contents == ["likes tea"]


def test_a_read_brings_what_was_changed_there(
    primary: Brain, alice: Principal, remember: Remember
) -> None:
    memory = remember(alice, "likes tea")
    primary.service.rows[copy_of(memory).own_id]["content"] = "likes coffee"
    assert memories.get(alice, memory.pk).content == "likes coffee"
    assert [row.content for row in memories.history(alice, memory.pk)] == ["likes tea"]
    assert ask(alice, "coffee") == ["likes coffee"]


def test_a_read_of_what_was_deleted_there_finds_nothing(
    primary: Brain, alice: Principal, remember: Remember
) -> None:
    memory = remember(alice, "likes tea")
    primary.service.rows.clear()
    with pytest.raises(NotFound):
        memories.get(alice, memory.pk)
    assert Memory.objects.get().trashed_at is not None


def test_while_the_primary_is_down_its_mirror_answers(
    primary: Brain, alice: Principal, remember: Remember
) -> None:
    memory = remember(alice, "likes tea")
    primary.goes_down()
    assert memories.get(alice, memory.pk).content == "likes tea"
    assert [r.memory.content for r in listing.list_page(alice, listing.MemoryFilter()).rows] == [
        "likes tea"
    ]
    assert ask(alice, "tea") == ["likes tea"]


def test_another_owners_memory_is_not_found_before_anybody_is_asked(
    primary: Brain, alice: Principal, bob: Principal, remember: Remember
) -> None:
    memory = remember(alice, "likes tea")
    before = len(primary.calls)
    for call in (
        lambda: memories.get(bob, memory.pk),
        lambda: memories.update(bob, memory.pk, {"content": "x"}),
        lambda: memories.delete(bob, memory.pk),
    ):
        with pytest.raises(NotFound):
            call()
    assert len(primary.calls) == before


def test_a_list_is_the_primarys_page(primary: Brain, alice: Principal, bob: Principal) -> None:
    for number in range(5):
        moment = f"2026-03-0{number + 1}T00:00:00Z"
        primary.holds(f"alice {number}", uid(alice), createdAt=moment)
    primary.holds("bob's", uid(bob))
    page = listing.list_page(alice, listing.MemoryFilter(limit=2, page=2))
    assert [row.memory.content for row in page.rows] == ["alice 2", "alice 1"]
    assert (page.total, page.total_pages) == (5, 3)
    assert {memory.api_key_id for memory in Memory.objects.all()} == {alice.owner}


def test_whatever_a_primary_sends_a_caller_sees_only_its_own(
    primary: Brain, alice: Principal, bob: Principal
) -> None:
    primary.holds("bob's secret tea", uid(bob))
    everything = Answer(200, b'{"data": [' + _row(primary) + b'], "total": 1}')
    primary.provider.respond = lambda _request: everything
    assert listing.list_page(alice, listing.MemoryFilter()).rows == []
    assert ask(alice, "secret tea") == []


def _row(primary: Brain) -> bytes:
    import json

    return json.dumps(next(iter(primary.service.rows.values()))).encode()


def test_records_of_strangers_and_broken_ones_are_not_mirrored(
    primary: Brain, manager: Principal
) -> None:
    primary.holds("of nobody we know", "b3a1c1d0-0000-4000-8000-000000000000")
    primary.holds("  ", "")
    primary.holds("of the default key", "")
    page = listing.list_page(SYSTEM, listing.MemoryFilter())
    assert [row.memory.content for row in page.rows] == ["of the default key"]
    assert Memory.objects.get().api_key.is_default


def test_two_records_with_one_key_are_two_memories(primary: Brain, alice: Principal) -> None:
    primary.holds("green", uid(alice), key="tea")
    primary.holds("black", uid(alice), key="tea")
    for _time in range(2):
        page = listing.list_page(alice, listing.MemoryFilter())
        assert sorted(row.memory.content for row in page.rows) == ["black", "green"]
    assert Memory.objects.count() == 2


def test_an_import_is_copied_to_the_primary_by_a_job(
    primary: Brain, alice: Principal, work: Work
) -> None:
    exchange.import_records(alice, [{"content": f"text {n}"} for n in range(3)], owner=None)
    assert primary.contents == []
    work()
    assert sorted(primary.contents) == ["text 0", "text 1", "text 2"]
    assert BackendCopy.objects.count() == 3


def test_memories_from_before_are_copied_on_request(
    alice: Principal, remember: Remember, work: Work
) -> None:
    remember(alice, "one")
    remember(alice, "two")
    with brain() as running:
        configure("brain", brain=running.config)
        transfers.start(SYSTEM, "copy", "brain")
        work()
        assert sorted(running.contents) == ["one", "two"]
        transfers.start(SYSTEM, "copy", "brain")
        work()
        assert len(running.contents) == 2


def test_what_a_backend_has_is_read_on_request_and_what_it_lost_let_go(
    primary: Brain, alice: Principal, remember: Remember, work: Work
) -> None:
    remember(alice, "stays")
    gone = remember(alice, "goes")
    primary.holds("new there", uid(alice))
    del primary.service.rows[copy_of(gone).own_id]
    job = transfers.start(SYSTEM, "pull", "brain")
    work()
    job.refresh_from_db()
    assert (job.state, job.result) == ("succeeded", {"mirrored": 2, "removed": 1, "kept": 0})
    live = Memory.objects.filter(trashed_at__isnull=True)
    assert sorted(live.values_list("content", flat=True)) == ["new there", "stays"]


def test_a_backend_that_seems_emptied_takes_nothing_with_it(
    primary: Brain, alice: Principal, work: Work
) -> None:
    for number in range(25):
        primary.holds(f"text {number}", uid(alice))
    transfers.start(SYSTEM, "pull", "brain")
    work()
    primary.service.rows.clear()
    job = transfers.start(SYSTEM, "pull", "brain")
    work()
    job.refresh_from_db()
    assert job.result == {"mirrored": 0, "removed": 0, "kept": 25}
    assert Memory.objects.filter(trashed_at__isnull=True).count() == 25


def test_a_copy_stops_when_the_backend_goes_down_and_goes_on_later(
    alice: Principal, remember: Remember, work: Work
) -> None:
    remember(alice, "one")
    with brain() as running:
        configure("brain", brain=running.config)
        running.goes_down()
        job = transfers.start(SYSTEM, "copy", "brain")
        work()
        job.refresh_from_db()
        assert (job.state, job.error_code) == (Job.State.FAILED, "unreachable")
        running.comes_back()
        transfers.start(SYSTEM, "copy", "brain")
        work()
        assert running.contents == ["one"]


def test_a_primary_that_leaves_lists_to_its_mirror_is_read_every_quarter_of_an_hour(
    alice: Principal, work: Work
) -> None:
    with brain() as running:
        configure("brain", brain={**running.config, "answers": "mirror"})
        running.holds("from there", uid(alice))
        assert listing.list_page(alice, listing.MemoryFilter()).rows == []
        assert running.calls == []
        for _round in range(2):
            transfers.resume()
        work()
        rows = listing.list_page(alice, listing.MemoryFilter()).rows
        assert [row.memory.content for row in rows] == ["from there"]
        pulls = Job.objects.filter(kind="backend-pull")
        assert pulls.count() == 1
        pulls.update(created_at=now() - timedelta(minutes=16))
        transfers.resume()
        assert pulls.count() == 2


def test_what_is_mirrored_leaves_an_audit_row_once(primary: Brain, alice: Principal) -> None:
    primary.holds("from there", uid(alice))
    for _time in range(2):
        listing.list_page(alice, listing.MemoryFilter())
    rows = AuditEntry.objects.filter(action="memory.mirror")
    assert [(row.actor, row.count) for row in rows] == [("system:system", 1)]
