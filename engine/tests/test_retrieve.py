"""The pipeline after the lists: what each stage keeps, drops and tells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from engine.errors import EngineError, Unavailable
from engine.retrieve import FusionRule, Tiers, retrieve
from engine.testing.fake_tiers import (
    ListedKeywords,
    ListedPassages,
    ListedVectors,
    Scores,
    passage,
)
from engine.testing.fakes import FakeEmbedding
from engine.types import (
    Beside,
    Candidate,
    Fusion,
    Health,
    Match,
    Mode,
    Passage,
    Place,
    Query,
    Retrieval,
    Scope,
    Stage,
    Tier,
)

SCOPE = Scope(now_ms=1_700_000_000_000, owners=frozenset({1}))
TEXTS = {1: "green tea in the morning", 2: "coffee at noon", 3: "the staging server"}


def tiers(
    keyword: Scores,
    vector: Scores,
    *,
    places: dict[int, Place] | None = None,
    beside: dict[int, Beside] | None = None,
) -> Tiers:
    passages = [passage(key, text) for key, text in TEXTS.items()]
    return Tiers(
        keyword=ListedKeywords(keyword),
        passages=ListedPassages(passages, places, beside),
        source=FakeEmbedding(),
        store=ListedVectors(vector),
    )


def found(retrieval: Retrieval) -> list[int]:
    return [hit.passage.id for hit in retrieval.hits]


def stage(retrieval: Retrieval, name: str) -> Stage:
    assert retrieval.trace is not None
    return next(stage for stage in retrieval.trace.stages if stage.name == name)


def test_both_lists_are_fused_and_the_trace_names_every_stage() -> None:
    done = retrieve(Query("tea", trace=True), SCOPE, tiers({1: 4.0}, {2: 0.9, 1: 0.8}))
    assert (found(done), done.tier, done.fusion) == ([1, 2], Tier.HYBRID, Fusion.SCORES)
    assert done.trace is not None
    names = [one.name for one in done.trace.stages]
    assert names == ["keyword", "embed", "vector", "fuse", "collapse", "limit", "budget"]


def test_weights_that_are_both_nothing_are_as_if_not_set() -> None:
    for kind in Fusion:
        rule = FusionRule(kind, keyword=0.0, vector=0.0)
        assert rule.weights == FusionRule(kind).weights
        done = retrieve(
            Query("tea"), SCOPE, replace(tiers({1: 4.0}, {2: 0.9, 1: 0.8}), fusion=rule)
        )
        assert found(done) == [1, 2]


def test_rank_fusion_takes_weights() -> None:
    keyword, vector = {1: 9.0, 2: 8.0}, {2: 0.9, 1: 0.8}
    for keyword_weight, first in ((2.0, 1), (0.5, 2)):
        rule = FusionRule(Fusion.RRF, keyword=keyword_weight)
        done = retrieve(Query("tea"), SCOPE, replace(tiers(keyword, vector), fusion=rule))
        assert found(done)[0] == first
        assert done.fusion is Fusion.RRF


def test_the_language_of_the_query_goes_to_the_store() -> None:
    store = ListedVectors({1: 0.9})
    retrieve(Query("绿茶"), SCOPE, replace(tiers({}, {}), store=store))
    assert store.languages == ["zh"]


def test_a_model_that_does_not_know_the_language_of_the_query_is_left_out() -> None:
    english_only = replace(tiers({1: 4.0}, {2: 0.9}), languages=frozenset({"latin"}))
    done = retrieve(Query("绿茶"), SCOPE, english_only)
    assert (found(done), done.tier) == ([1], Tier.KEYWORD)
    assert [item.code for item in done.degraded] == ["unknown_language"]


def test_words_do_not_speak_against_a_text_in_another_script() -> None:
    places = {1: Place("zh", 1), 2: Place("latin", 1), 3: Place("latin", 1)}
    vector = {1: 0.9, 2: 0.85, 3: 0.1}
    asked = tiers({2: 1.0}, vector, places=places)
    assert found(retrieve(Query("morning drink"), SCOPE, asked))[0] == 1
    assert found(retrieve(Query("早上的饮料"), SCOPE, asked))[0] == 2


def test_match_all_binds_what_meaning_finds() -> None:
    query = Query("green tea", match=Match.ALL, trace=True)
    done = retrieve(query, SCOPE, tiers({1: 1.0}, {2: 0.95, 1: 0.9}))
    assert found(done) == [1]
    assert [e.dropped for e in stage(done, "match").entries] == ["", "match"]


def test_a_phrase_binds_the_vector_mode_too() -> None:
    query = Query("at noon", mode=Mode.VECTOR, match=Match.PHRASE)
    done = retrieve(query, SCOPE, tiers({}, {1: 0.95, 2: 0.9}))
    assert (found(done), done.hits[0].vector_rank) == ([2], 1)


def test_a_match_mode_lets_no_neighbour_in() -> None:
    places = {1: Place("latin", 1, "s"), 3: Place("latin", 1, "s")}
    asked = tiers({1: 1.0}, {1: 0.9}, places=places, beside={1: (None, 3), 3: (1, None)})
    assert found(retrieve(Query("tea"), SCOPE, asked)) == [1, 3]
    assert found(retrieve(Query("tea", match=Match.ALL), SCOPE, asked)) == [1]


def test_the_time_asked_for_comes_first() -> None:
    asked = tiers({1: 4.0, 2: 3.9}, {1: 0.9, 2: 0.9})
    assert isinstance(asked.passages, ListedPassages)
    asked.passages.dated_ids = [2, 3]
    done = retrieve(Query("what was it yesterday", trace=True), SCOPE, asked)
    assert found(done) == [2, 1, 3]
    assert stage(done, "dates").entries[0].passage_id == 2


@pytest.mark.parametrize("mode", [Mode.VECTOR, Mode.HYBRID])
def test_nothing_relevant_is_an_answer(mode: Mode) -> None:
    query = Query("quantum chromodynamics", mode=mode, trace=True)
    done = retrieve(query, SCOPE, replace(tiers({}, {1: 0.2, 2: 0.1}), floor=0.25))
    assert found(done) == []
    assert [hit.passage.id for hit in done.nearest] == [1, 2]
    assert {e.dropped for e in stage(done, "floor").entries} == {"below_floor"}
    assert stage(done, "floor").note == "0.200 / 0.250"


def test_one_vector_over_the_floor_keeps_all() -> None:
    done = retrieve(Query("x"), SCOPE, replace(tiers({}, {1: 0.3, 2: 0.1}), floor=0.25))
    assert (found(done), done.nearest) == ([1, 2], ())


def test_the_words_of_the_query_count_as_evidence_against_the_floor() -> None:
    low = replace(tiers({3: 2.0}, {1: 0.2}), floor=0.25)
    assert 3 in found(retrieve(Query("staging credentials"), SCOPE, low))
    assert found(retrieve(Query("staging credentials rotation policy"), SCOPE, low)) == []


class Reversing:
    """A reranker that turns the order around, or fails."""

    name = "reversing"

    def __init__(self, error: EngineError | None = None) -> None:
        self.error = error

    def rerank(
        self, query: str, candidates: Sequence[tuple[Candidate, Passage]]
    ) -> list[Candidate]:
        if self.error is not None:
            raise self.error
        turned = [candidate for candidate, _ in reversed(candidates)]
        return [Candidate(c.passage_id, r, 1 / r) for r, c in enumerate(turned, start=1)]

    def health(self) -> Health:
        return Health(True)


def test_a_reranker_reorders_and_is_named() -> None:
    asked = replace(tiers({1: 4.0, 2: 1.0}, {}), reranker=Reversing())
    done = retrieve(Query("tea", trace=True), SCOPE, asked)
    assert (found(done), done.reranker) == ([2, 1], "reversing")
    assert [hit.rerank_score for hit in done.hits] == [1.0, 0.5]
    assert stage(done, "rerank").note == "reversing"


def test_a_reranker_sees_more_than_the_limit() -> None:
    asked = replace(tiers({1: 4.0, 2: 3.0, 3: 1.0}, {}), reranker=Reversing())
    assert found(retrieve(Query("tea", limit=1), SCOPE, asked)) == [3]


def test_a_reranker_that_fails_changes_nothing_and_is_told() -> None:
    asked = replace(tiers({1: 4.0, 2: 1.0}, {}), reranker=Reversing(Unavailable("gone")))
    done = retrieve(Query("tea", trace=True), SCOPE, asked)
    assert (found(done), done.reranker) == ([1, 2], None)
    assert [item.tier for item in done.degraded] == ["rerank"]
    assert stage(done, "rerank").note == done.degraded[0].code


def test_without_vectors_the_hybrid_order_is_that_of_the_words() -> None:
    done = retrieve(Query("tea"), SCOPE, replace(tiers({1: 4.0, 2: 1.0}, {}), store=None))
    assert (found(done), done.tier, done.fusion) == ([1, 2], Tier.KEYWORD, None)
    assert [item.code for item in done.degraded] == ["off"]


def test_when_both_tiers_fail_nothing_comes_and_both_are_told() -> None:
    asked = replace(tiers({}, {}), store=None)
    asked = replace(asked, keyword=ListedKeywords({}, error=Unavailable("gone")))
    done = retrieve(Query("tea"), SCOPE, asked)
    assert found(done) == []
    assert {item.tier for item in done.degraded} == {"vector", "keyword"}
