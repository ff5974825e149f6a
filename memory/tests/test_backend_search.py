"""Searches that a primary backend answers by itself, and those its mirror answers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine.types import Mode
from memory.models import MemoryUse
from memory.principal import SYSTEM, Principal
from memory.services import memories
from memory.services.backends import transfers
from memory.services.retrieval import RetrieveRequest, retrieve
from memory.tests.asking import ask, contents
from memory.tests.backends import Brain, brain, configure, copy_of, uid
from memory.tests.conftest import Remember, Work


@pytest.fixture
def primary(first_start: None) -> Iterator[Brain]:
    """A service that is primary and searches by itself."""
    with brain() as running:
        configure("brain", brain=running.config)
        yield running


def test_the_primarys_order_is_kept_and_told(primary: Brain, alice: Principal) -> None:
    primary.holds("tea", uid(alice))
    primary.holds("green tea in the morning", uid(alice))
    view = retrieve(alice, RetrieveRequest("green tea", trace=True))
    assert contents(view) == ["green tea in the morning", "tea"]
    assert [hit.tier for hit in view.retrieval.hits] == ["backend", "backend"]
    assert [hit.score for hit in view.retrieval.hits] == [1.0, 0.5]
    assert view.retrieval.trace is not None
    assert [stage.name for stage in view.retrieval.trace.stages] == ["backend"]


def test_nothing_found_there_is_an_answer(
    primary: Brain, alice: Principal, remember: Remember
) -> None:
    remember(alice, "likes tea")
    primary.service.rows.clear()
    view = retrieve(alice, RetrieveRequest("tea"))
    assert (contents(view), view.retrieval.degraded) == ([], ())


def test_when_it_fails_the_first_fallback_that_answers_does(
    alice: Principal, remember: Remember
) -> None:
    with brain() as first, brain() as second:
        configure("first", ["second"], first=first.config, second=second.config)
        second.holds("tea at the second", uid(alice))
        first.goes_down()
        view = retrieve(alice, RetrieveRequest("tea"))
        assert contents(view) == ["tea at the second"]
        assert [(item.tier, item.code) for item in view.retrieval.degraded] == [
            ("backend", "unreachable")
        ]


def test_what_a_fallback_finds_changes_neither_the_truth_nor_its_mirror(
    alice: Principal, remember: Remember, work: Work
) -> None:
    with brain() as first, brain() as second:
        configure("first", ["second"], first=first.config, second=second.config)
        memory = remember(alice, "likes tea")
        transfers.start(SYSTEM, "copy", "second")
        work()
        second.service.rows[copy_of(memory, "second").own_id]["content"] = "likes old tea"
        second.holds("tea that only the second knows", uid(alice))
        first.goes_down()
        found = ask(alice, "tea")
        assert sorted(found) == ["likes tea", "tea that only the second knows"]
        first.comes_back()
        work()
        assert first.contents == ["likes tea"]


def test_when_all_fail_the_mirror_answers_and_says_why(
    primary: Brain, alice: Principal, remember: Remember
) -> None:
    remember(alice, "likes tea")
    primary.goes_down()
    view = retrieve(alice, RetrieveRequest("tea", mode=Mode.KEYWORD))
    assert contents(view) == ["likes tea"]
    assert view.retrieval.tier == "keyword"
    assert ("backend", "unreachable") in {
        (item.tier, item.code) for item in view.retrieval.degraded
    }


def test_a_backend_that_leaves_searching_to_the_mirror_is_not_asked(
    alice: Principal, remember: Remember
) -> None:
    with brain() as running:
        configure("brain", brain={**running.config, "answers": "mirror"})
        remember(alice, "likes tea")
        before = len(running.calls)
        assert ask(alice, "tea") == ["likes tea"]
        assert len(running.calls) == before


def test_the_newest_memories_come_from_the_mirror(
    primary: Brain, alice: Principal, remember: Remember
) -> None:
    remember(alice, "likes tea")
    assert ask(alice, "", mode=Mode.RECENT) == ["likes tea"]


def test_what_may_not_be_seen_here_stays_unseen(
    primary: Brain, alice: Principal, bob: Principal, remember: Remember
) -> None:
    primary.holds("bob's tea", uid(bob))
    primary.holds("expired tea", uid(alice), expiresAt="2020-01-01T00:00:00Z")
    primary.holds("tea of a session", uid(alice), sessionId="s2")
    kept = remember(alice, "tea", session_id="s1")
    assert ask(alice, "tea", session="s1") == ["tea"]
    memories.delete(alice, kept.pk)
    assert ask(alice, "tea") == ["tea of a session"]


def test_the_budget_and_the_limit_hold(primary: Brain, alice: Principal) -> None:
    for number in range(5):
        primary.holds(f"tea {number} " + "word " * 100, uid(alice))
    assert len(ask(alice, "tea", limit=3)) == 3
    view = retrieve(alice, RetrieveRequest("tea", max_tokens=300))
    assert view.retrieval.total_tokens <= 300
    assert len(view.retrieval.hits) == 2


def test_uses_are_counted_for_clients(primary: Brain, alice: Principal) -> None:
    primary.holds("likes tea", uid(alice))
    retrieve(alice, RetrieveRequest("tea"), purpose="client")
    assert MemoryUse.objects.get().access_count == 1
