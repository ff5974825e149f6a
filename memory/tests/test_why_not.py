"""An expected memory that did not come back is told where it was lost, and by how much."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from engine.types import Match, MemoryType, Mode
from memory.clock import now
from memory.errors import NotFound
from memory.models import ApiKey, Memory
from memory.principal import SYSTEM, Principal
from memory.services import memories, why_not_text
from memory.services import settings as settings_service
from memory.services.retrieval import RetrieveRequest
from memory.services.why_not import WhyNot, why_not
from memory.tests.conftest import Remember, Work

TEA = RetrieveRequest("green tea", mode=Mode.KEYWORD)


def asked(principal: Principal, memory: Memory, request: RetrieveRequest = TEA) -> WhyNot:
    told = why_not(principal, request, str(memory.pk))
    assert why_not_text.sentence(told)
    return told


def lost(told: WhyNot) -> tuple[str, str]:
    assert not told.found
    return told.stage, told.reason


def test_a_memory_that_comes_back_is_found_with_its_rank(
    alice: Principal, remember: Remember
) -> None:
    told = asked(alice, remember(alice, "likes green tea"))
    assert (told.found, told.rank, told.stage, told.reason) == (True, 1, "", "")
    assert why_not_text.sentence(told) == "It was found: hit 1."
    assert why_not_text.hints(told) == []


def test_another_owners_memory_does_not_exist(
    alice: Principal, bob: Principal, remember: Remember
) -> None:
    memory = remember(bob, "likes green tea")
    with pytest.raises(NotFound):
        asked(alice, memory)
    with pytest.raises(NotFound):
        why_not(alice, replace(TEA, reach="global"), str(memory.pk))
    with pytest.raises(NotFound):
        why_not(alice, replace(TEA, reach="global"), "not an id")


def test_a_shared_memory_of_another_owner_is_told_in_the_global_scope(
    alice: Principal, manager: Principal, remember: Remember
) -> None:
    memory = remember(manager, "likes green tea", is_shared=True)
    assert asked(alice, memory, replace(TEA, reach="global")).found
    with pytest.raises(NotFound):
        asked(alice, memory)


def test_a_manager_is_told_that_another_key_was_searched(
    alice: Principal, bob: Principal, remember: Remember
) -> None:
    memory = remember(bob, "likes green tea")
    uid = str(ApiKey.objects.get(name="alice").uid)
    assert lost(asked(SYSTEM, memory, replace(TEA, owner=uid))) == ("scope", "other_owner")


def test_a_memory_outside_the_scope_is_told_why(alice: Principal, remember: Remember) -> None:
    past = now() - timedelta(days=40)
    trashed = remember(alice, "green tea one")
    memories.delete(alice, str(trashed.pk))
    archived = remember(alice, "green tea two")
    Memory.objects.filter(pk=archived.pk).update(archived_at=now())
    expired = remember(alice, "green tea three", expires_at=past)
    old = remember(alice, "green tea four", retained_at=past)
    session = remember(alice, "green tea five", session_id="s-1")
    for memory, reason in (
        (trashed, "trashed"),
        (archived, "archived"),
        (expired, "expired"),
        (old, "retention"),
    ):
        assert lost(asked(alice, memory)) == ("scope", reason)
    elsewhere = asked(alice, session, replace(TEA, session="s-2"))
    assert lost(elsewhere) == ("scope", "other_session")
    other = asked(alice, session, replace(TEA, types=(MemoryType.SEMANTIC,)))
    assert lost(other) == ("scope", "other_type")


def test_typed_decay_is_told(alice: Principal, remember: Remember, settings: object) -> None:
    past = now() - timedelta(days=400)
    memory = remember(alice, "green tea", type="episodic", created_at=past)
    settings.MEMORY_TYPED_DECAY = {"MEMORY_TYPED_DECAY_ENABLED": "true"}  # type: ignore[attr-defined]
    assert lost(asked(alice, memory)) == ("scope", "decayed")


def test_a_memory_without_the_querys_words_is_told_so(alice: Principal, remember: Remember) -> None:
    told = asked(alice, remember(alice, "went to Kyoto"))
    assert lost(told) == ("lists", "no_words")
    assert (told.matched, told.missing) == ((), ("green", "tea"))
    assert [code for code, _text in why_not_text.hints(told)] == ["use_meaning", "other_words"]


def test_a_memory_without_a_vector_yet_is_told_so(
    alice: Principal, remember: Remember, work: Work
) -> None:
    remember(alice, "drinks green tea")
    work()
    memory = remember(alice, "went to Kyoto")
    remember(alice, "moved to Osaka")
    told = asked(alice, memory, replace(TEA, mode=Mode.HYBRID))
    # A few waiting memories are embedded before a search: then it is found by meaning.
    assert told.found or lost(told) == ("lists", "no_vector")


def test_match_modes_tell_what_is_missing(alice: Principal, remember: Remember) -> None:
    memory = remember(alice, "tea that is green")
    words = RetrieveRequest("green tea leaves", mode=Mode.KEYWORD, match=Match.ALL)
    told = asked(alice, memory, words)
    assert lost(told) == ("match", "not_all_words")
    assert told.missing == ("leaf",)
    phrase = asked(alice, memory, replace(TEA, match=Match.PHRASE))
    assert lost(phrase) == ("match", "no_phrase")


def test_a_memory_below_the_depth_of_a_list_has_rank_score_and_shortfall(
    alice: Principal, remember: Remember, settings: object
) -> None:
    settings.MEMORY_VEC_TOP_K = 3  # type: ignore[attr-defined]
    for number in range(4):
        remember(alice, f"green tea number {number}")
    memory = remember(alice, "a green field far away behind the hills and the river")
    told = asked(alice, memory)
    assert lost(told) == ("lists", "below_depth")
    assert (told.numbers.rank, told.numbers.last_rank) == (5, 3)
    short_by = told.numbers.short_by
    assert short_by is not None
    assert short_by > 0
    assert told.lists[0].short_by == short_by


def test_the_limit_tells_rank_and_missing_score(alice: Principal, remember: Remember) -> None:
    remember(alice, "green tea, green tea")
    memory = remember(alice, "a green field far away behind the hills and the river")
    told = asked(alice, memory, replace(TEA, limit=1))
    assert lost(told) == ("limit", "limit")
    assert (told.numbers.rank, told.numbers.last_rank) == (2, 1)
    assert (told.numbers.short_by or 0) > 0
    assert "ranks 2 and the limit is 1" in why_not_text.sentence(told)


def test_the_budget_tells_what_was_left(alice: Principal, remember: Remember) -> None:
    first = remember(alice, "green tea")
    memory = remember(alice, "a long story about green " * 8, key="story")
    told = asked(alice, memory, replace(TEA, max_tokens=first.tokens + 5))
    assert lost(told) == ("budget", "budget")
    assert (told.numbers.tokens, told.numbers.left) == (memory.tokens, 5)
    assert told.numbers.short_by == memory.tokens - 5


def test_a_long_memory_is_found_by_any_of_its_pieces(alice: Principal, remember: Remember) -> None:
    memory = remember(alice, "filler sentence about nothing. " * 60 + "green tea")
    assert asked(alice, memory).found


def test_recent_needs_no_words(alice: Principal, remember: Remember) -> None:
    memory = remember(alice, "went to Kyoto", created_at=now() - timedelta(days=1))
    remember(alice, "likes green tea")
    told = asked(alice, memory, RetrieveRequest("", mode=Mode.RECENT, limit=1))
    assert lost(told) == ("limit", "limit")
    assert [place.name for place in told.lists] == ["recent"]


def test_a_hybrid_search_tells_the_place_in_each_list(
    alice: Principal, remember: Remember, work: Work
) -> None:
    memory = remember(alice, "likes green tea")
    work()
    told = asked(alice, memory, replace(TEA, mode=Mode.HYBRID))
    assert {place.name: place.rank for place in told.lists} == {"vector": 1, "keyword": 1}
    assert {place.reason for place in told.lists} == {""}


def test_a_memory_below_the_floor_is_told_its_score_and_the_floor(
    alice: Principal, remember: Remember, work: Work
) -> None:
    memory = remember(alice, "went to Kyoto", key="k")
    work()
    settings_service.update(SYSTEM, {"relevanceFloor": 1.0})
    told = asked(alice, memory, RetrieveRequest("zebra quagga"))
    assert lost(told) == ("floor", "below_floor")
    assert told.numbers.last_score == 1.0
    assert (told.numbers.short_by or 0) > 0
    assert [code for code, _text in why_not_text.hints(told)] == ["lower_floor", "other_words"]


def test_a_reranker_that_moves_a_memory_over_the_limit_is_blamed(
    alice: Principal, remember: Remember
) -> None:
    for number in range(6):
        remember(alice, f"a green field of the kind {number}", key=f"n{number}")
    first = remember(alice, "black", key="tea")
    remember(alice, "after a long walk through the hills we drank green tea at the inn", key="m")
    request = replace(TEA, limit=1)
    assert asked(alice, first, request).rank == 1
    settings_service.update(SYSTEM, {"rerankEnabled": True, "rerankKind": "light"})
    told = asked(alice, first, request)
    assert lost(told) == ("rerank", "reranked_below")
    assert (told.numbers.rank, told.numbers.last_rank) == (2, 1)
    assert "Reranking moved it to place 2" in why_not_text.sentence(told)
