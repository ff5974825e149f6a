"""A store that cannot answer is passed over, and the account says so."""

from __future__ import annotations

from dataclasses import replace

from engine.errors import EngineError, Unavailable
from engine.retrieve import Tiers, retrieve
from engine.testing.fake_tiers import ListedKeywords, ListedPassages, ListedVectors, Scores, passage
from engine.testing.fakes import FakeEmbedding
from engine.types import Candidate, Mode, Query, Scope, Tier, Vector

SCOPE = Scope(now_ms=1_700_000_000_000, owners=frozenset({1}))


class Store(ListedVectors):
    """A store with a name that may fail."""

    def __init__(self, name: str, scores: Scores, error: EngineError | None = None) -> None:
        super().__init__(scores)
        self.name = name
        self.error = error

    def search(
        self, vector: Vector, *, scope: Scope, limit: int, language: str = ""
    ) -> list[Candidate]:
        """The list, or the failure."""
        if self.error is not None:
            raise self.error
        return super().search(vector, scope=scope, limit=limit, language=language)


def tiers(*stores: Store) -> Tiers:
    passages = ListedPassages([passage(1, "green tea"), passage(2, "coffee")])
    base = Tiers(keyword=ListedKeywords({1: 1.0}), passages=passages, source=FakeEmbedding())
    return replace(base, store=stores[0], fallback_stores=stores[1:])


def test_the_first_store_that_answers_is_the_one_that_is_named() -> None:
    asked = tiers(
        Store("far", {}, Unavailable("far away", code="down")),
        Store("near", {2: 0.9}),
        Store("nearer", {1: 0.9}),
    )
    done = retrieve(Query("tea", mode=Mode.VECTOR), SCOPE, asked)
    assert [hit.passage.id for hit in done.hits] == [2]
    assert (done.tier, done.vector_store) == (Tier.VECTOR, "near")
    assert [(d.tier, d.code, d.message) for d in done.degraded] == [
        ("vectorStore", "down", "far away")
    ]


def test_a_store_that_answers_spares_the_others() -> None:
    near = Store("near", {1: 0.9})
    done = retrieve(Query("tea", mode=Mode.VECTOR), SCOPE, tiers(Store("far", {2: 0.9}), near))
    assert (done.vector_store, done.degraded, near.languages) == ("far", (), [])


def test_when_no_store_answers_words_do_and_every_failure_is_told() -> None:
    asked = tiers(
        Store("far", {}, Unavailable("far away", code="down")),
        Store("near", {}, Unavailable("broken", code="unreadable")),
    )
    done = retrieve(Query("tea", mode=Mode.HYBRID), SCOPE, asked)
    assert [hit.passage.id for hit in done.hits] == [1]
    assert (done.tier, done.vector_store) == (Tier.KEYWORD, None)
    assert [(d.tier, d.code) for d in done.degraded] == [
        ("vectorStore", "down"),
        ("vector", "unreadable"),
    ]
