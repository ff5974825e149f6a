"""What every reranker keeps. Subclass, and give a ``reranker`` fixture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from engine.protocols import Reranker
from engine.types import Candidate, Passage, PassageKind

QUERY = "Which port does the staging server listen on?"
TEXTS = (
    "Je préfère travailler le matin.",
    "小明喜欢喝咖啡，不喜欢茶。",
    "The staging server listens on port 5433.",
    "東京タワーの近くに住んでいます。",
    "We planted tomatoes and basil in the garden.",
)
ANSWER = 2
"""Place of the text that answers the query."""

ODD = (
    "",
    "   \n\t ",
    "before\0after",
    "😀👩‍👩‍👧‍👦",
    "\ud800 lone surrogate",
    "word " * 3_000,
    "字" * 9_000,
)
ODD_QUERIES = ("?", "  ", "\ud800", "a\0b", "word " * 200, "字" * 300, "😀", '" OR 1=1 --')


def passage(passage_id: int, body: str, title: str = "") -> Passage:
    """A passage with this text."""
    return Passage(
        id=passage_id,
        kind=PassageKind.MEMORY,
        parent=str(passage_id),
        ordinal=0,
        owner=1,
        title=title,
        body=body,
        meta="",
        text_hash="",
        parent_tokens=1,
    )


def ranked(texts: Sequence[str]) -> list[tuple[Candidate, Passage]]:
    """Candidates in this order; ids do not follow the ranks."""
    return [
        (Candidate(1000 - rank, rank, 1.0 / rank), passage(1000 - rank, text))
        for rank, text in enumerate(texts, start=1)
    ]


class RerankerContract:
    """Tests of the protocol ``Reranker``."""

    @pytest.fixture
    def reranker(self) -> Reranker:
        """The reranker under test; subclasses override it."""
        pytest.fail("the subclass gives the reranker")

    def test_the_same_candidates_come_back(self, reranker: Reranker) -> None:
        given = ranked(TEXTS)
        assert_same_set(given, reranker.rerank(QUERY, given))

    def test_the_answer_comes_first(self, reranker: Reranker) -> None:
        given = ranked(TEXTS)
        assert reranker.rerank(QUERY, given)[0].passage_id == given[ANSWER][0].passage_id

    def test_nothing_gives_nothing(self, reranker: Reranker) -> None:
        assert reranker.rerank(QUERY, []) == []

    def test_one_candidate_stays(self, reranker: Reranker) -> None:
        given = ranked(TEXTS[:1])
        assert_same_set(given, reranker.rerank(QUERY, given))

    def test_equal_texts_keep_their_order(self, reranker: Reranker) -> None:
        given = ranked([TEXTS[0]] * 4)
        found = reranker.rerank(QUERY, given)
        assert [c.passage_id for c in found] == [c.passage_id for c, _ in given]

    def test_many_candidates_come_back(self, reranker: Reranker) -> None:
        given = ranked([f"{text} {place}" for place in range(20) for text in TEXTS])
        assert_same_set(given, reranker.rerank(QUERY, given))

    def test_odd_texts_are_ranked_like_others(self, reranker: Reranker) -> None:
        given = ranked(ODD)
        assert_same_set(given, reranker.rerank(QUERY, given))

    @pytest.mark.parametrize("query", ODD_QUERIES, ids=range(len(ODD_QUERIES)))
    def test_odd_queries_lose_no_candidate(self, reranker: Reranker, query: str) -> None:
        given = ranked(TEXTS)
        assert_same_set(given, reranker.rerank(query, given))

    def test_the_title_is_read(self, reranker: Reranker) -> None:
        given = ranked(TEXTS)
        candidate, last = given[-1]
        given[-1] = (candidate, replace(last, title=TEXTS[ANSWER], body="See above."))
        given[ANSWER] = (given[ANSWER][0], passage(given[ANSWER][0].passage_id, TEXTS[0]))
        assert reranker.rerank(QUERY, given)[0].passage_id == candidate.passage_id

    def test_the_same_question_gives_the_same_order(self, reranker: Reranker) -> None:
        given = ranked(TEXTS)
        assert reranker.rerank(QUERY, given) == reranker.rerank(QUERY, given)

    def test_threads_get_what_one_caller_gets(self, reranker: Reranker) -> None:
        given = ranked(TEXTS)
        expected = [c.passage_id for c in reranker.rerank(QUERY, given)]
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda _: reranker.rerank(QUERY, given), range(8)))
        assert [[c.passage_id for c in order] for order in found] == [expected] * 8

    def test_health_tells_that_it_works(self, reranker: Reranker) -> None:
        health = reranker.health()
        assert (health.available, health.reason) == (True, "")


def assert_same_set(given: Sequence[tuple[Candidate, Passage]], found: Sequence[Candidate]) -> None:
    """The same passages, ranked from 1, with finite scores that never rise."""
    assert sorted(c.passage_id for c in found) == sorted(c.passage_id for c, _ in given)
    assert [c.rank for c in found] == list(range(1, len(given) + 1))
    scores = [c.score for c in found]
    assert all(map(math.isfinite, scores))
    assert scores == sorted(scores, reverse=True)
