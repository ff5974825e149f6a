"""The light reranker."""

from __future__ import annotations

import pytest

from engine.protocols import Reranker
from engine.rerank.light import LightReranker, light_score
from engine.testing.contracts_rerank import RerankerContract, ranked
from engine.text.tokenize import analyzer


class TestLightReranker(RerankerContract):
    @pytest.fixture
    def reranker(self) -> Reranker:
        return LightReranker(analyzer("search"))


class TestLightRerankerOfVaults(RerankerContract):
    @pytest.fixture
    def reranker(self) -> Reranker:
        return LightReranker(analyzer("seed"))


@pytest.mark.parametrize(
    ("rank", "matched", "terms", "phrase", "wanted"),
    [
        pytest.param(1, 1, 3, False, 0.65, id="light_rerank-01 a"),
        pytest.param(3, 3, 3, True, 0.98254, id="light_rerank-01 c"),
        pytest.param(20, 2, 2, True, 0.869375, id="light_rerank-02"),
        pytest.param(40, 2, 2, False, 0.6355, id="light_rerank-03"),
        pytest.param(1, 1, 1, False, 0.85, id="light_rerank-04"),
        pytest.param(1, 0, 0, False, 0.55, id="a query without words"),
    ],
)
def test_the_formula(rank: int, matched: int, terms: int, phrase: bool, wanted: float) -> None:
    found = light_score(rank, matched=matched, terms=terms, phrase=phrase)
    assert found == pytest.approx(wanted, abs=1e-6)


def test_more_coverage_never_lowers_a_score() -> None:
    for rank in range(1, 101):
        scores = [light_score(rank, matched=m, terms=8, phrase=False) for m in range(9)]
        assert scores == sorted(scores)
        assert light_score(rank, matched=4, terms=8, phrase=True) > scores[4]


@pytest.mark.parametrize(
    ("query", "texts", "first"),
    [
        ("Kyoto trip budget", ["Kyoto in spring", "The budget of the Kyoto trip"], 1),
        ("喜欢 咖啡", ["我喜欢读书", "我喜欢喝咖啡"], 1),
        ("東京タワー", ["東京の天気", "東京タワーの近く"], 1),
        ("running shoes", ["a pair of socks", "she runs in new shoes"], 1),
    ],
)
def test_coverage_counts_in_every_language(query: str, texts: list[str], first: int) -> None:
    given = ranked(texts)
    found = LightReranker(analyzer("search")).rerank(query, given)
    assert found[0].passage_id == given[first][0].passage_id


def test_the_phrase_beats_scattered_words() -> None:
    given = ranked(["cold and then brew", "we brew it cold, cold brew it is"])
    found = LightReranker(analyzer("search")).rerank("cold brew", given)
    assert found[0].passage_id == given[1][0].passage_id
