"""Late interaction."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest

from engine.errors import EmbeddingFailed, RerankFailed
from engine.protocols import Reranker
from engine.rerank.late import LateReranker, max_sim
from engine.testing.contracts_rerank import QUERY, TEXTS, RerankerContract, ranked
from engine.testing.fakes import FakeEmbedding
from engine.types import Health, Matrix, Purpose

WORDS = re.compile(r"\w+")


class FakeTokens:
    """One vector for each word, near that of words alike."""

    def __init__(self) -> None:
        self._words = FakeEmbedding(dim=1024)
        self.error: EmbeddingFailed | None = None

    def token_vectors(self, texts: Sequence[str], *, purpose: Purpose) -> list[Matrix]:
        if self.error is not None:
            raise self.error
        return [self._words.embed(WORDS.findall(text), purpose=purpose) for text in texts]

    def health(self) -> Health:
        return Health(True)


class TestLateReranker(RerankerContract):
    @pytest.fixture
    def reranker(self) -> Reranker:
        return LateReranker(FakeTokens())


def test_max_sim_is_the_mean_of_the_best_cosines() -> None:
    query = np.array([[1, 0], [0, 1]], np.float32)
    passage = np.array([[1, 0], [0.6, 0.8]], np.float32)
    assert max_sim(query, passage) == pytest.approx(0.9)
    assert max_sim(query, np.empty((0, 2), np.float32)) == 0.0


def test_what_lies_beyond_the_depth_stays_behind_in_its_order() -> None:
    given = ranked(TEXTS)
    done = LateReranker(FakeTokens(), depth=3).rerank(QUERY, given)
    assert [c.passage_id for c in done[3:]] == [c.passage_id for c, _ in given[3:]]
    assert [c.rank for c in done] == [1, 2, 3, 4, 5]
    assert all(before.score >= after.score for before, after in pairwise(done))


def test_a_source_that_fails_is_told_with_its_code() -> None:
    tokens = FakeTokens()
    tokens.error = EmbeddingFailed("gone", code="model_load_failed")
    with pytest.raises(RerankFailed) as caught:
        LateReranker(tokens).rerank(QUERY, ranked(TEXTS))
    assert caught.value.code == "model_load_failed"
