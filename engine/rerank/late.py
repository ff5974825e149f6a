"""Late interaction: every word of the query looks for its best word in the passage.

MaxSim of Khattab and Zaharia, "ColBERT" (2020), over the last hidden states of a sentence encoder
that was not trained for it: the mean over the query's tokens of the best cosine among the
passage's. Passages are embedded again, about 10 ms each, so only the first ones are looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.errors import EmbeddingFailed, RerankFailed
from engine.protocols import TokenVectorSource
from engine.rerank.order import passage_text, reordered, sendable
from engine.types import Candidate, Health, Matrix, Passage, Purpose

SHARE = 0.6
"""What the reranker's score counts beside the first stage's, both brought to 0..1."""

DEPTH = 20


def max_sim(query: Matrix, passage: Matrix) -> float:
    """Mean over the query's tokens of the best cosine among the passage's; 0 without tokens."""
    if not len(query) or not len(passage):
        return 0.0
    return float((query @ passage.T).max(axis=1).mean())


@dataclass(frozen=True)
class LateReranker:
    """``Reranker`` named ``late``. Candidates beyond ``depth`` stay behind those it looked at."""

    source: TokenVectorSource
    depth: int = DEPTH

    @property
    def name(self) -> str:
        return "late"

    def rerank(
        self, query: str, candidates: Sequence[tuple[Candidate, Passage]]
    ) -> list[Candidate]:
        """By the weighted mean of the first stage's score and the words' closeness. Raises
        ``RerankFailed``."""
        if not candidates:
            return []
        first = candidates[: self.depth]
        try:
            asked = self.source.token_vectors([sendable(query)], purpose=Purpose.QUERY)[0]
            texts = [passage_text(passage) for _, passage in first]
            held = self.source.token_vectors(texts, purpose=Purpose.DOCUMENT)
        except EmbeddingFailed as error:
            raise RerankFailed(str(error), code=error.code) from error
        close = _in_range([max_sim(asked, passage) for passage in held])
        before = _in_range([candidate.score for candidate, _ in first])
        scores = (1 - SHARE) * before + SHARE * close
        ordered = reordered([candidate for candidate, _ in first], list(scores))
        rest = [candidate for candidate, _ in candidates[self.depth :]]
        behind = [
            Candidate(candidate.passage_id, rank, 0.0)
            for rank, candidate in enumerate(rest, start=len(ordered) + 1)
        ]
        return [*ordered, *behind]

    def health(self) -> Health:
        """That of the encoder."""
        return self.source.health()


def _in_range(scores: Sequence[float]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Scores between 0 (the worst) and 1 (the best); all 1 when they are equal."""
    values = np.asarray(scores, np.float64)
    spread = values.max() - values.min()
    return (values - values.min()) / spread if spread else np.ones(values.size)
