"""What every reranker shares: the text it reads, and turning scores into an order."""

from __future__ import annotations

from collections.abc import Sequence

from engine.text.template import embedded_text
from engine.types import Candidate, Passage

MAX_CHARS = 8_192
"""Longest text given to a reranker; passages are far shorter, models read a few hundred tokens."""


def passage_text(passage: Passage) -> str:
    """The text of a passage that a reranker judges: the one its vector stands for."""
    return sendable(embedded_text(passage.title, passage.body))


def sendable(text: str) -> str:
    """A text that models and servers take: no NUL, no lone surrogate, not empty, not endless."""
    cut = text[:MAX_CHARS].replace("\0", " ") or " "
    return cut.encode("utf-8", "replace").decode("utf-8")


def reordered(candidates: Sequence[Candidate], scores: Sequence[float]) -> list[Candidate]:
    """The candidates by their new scores, best first, ranks from 1; equal scores keep their order.

    ``scores`` has one finite number for each candidate.
    """
    best_first = sorted(
        zip(candidates, scores, strict=True), key=lambda pair: pair[1], reverse=True
    )
    return [
        Candidate(candidate.passage_id, rank, float(score))
        for rank, (candidate, score) in enumerate(best_first, start=1)
    ]
