"""Reciprocal rank fusion (Cormack, Clarke and Büttcher, 2009)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

DEFAULT_K = 60


Id = TypeVar("Id", int, str)


def fuse(
    lists: Sequence[Sequence[Id]], *, k: int = DEFAULT_K, weights: Sequence[float] | None = None
) -> list[tuple[Id, float]]:
    """Fuse ranked lists of ids: ``(id, score)``, best first, ties by id.

    ``score = Σ weight / (k + rank)`` with ranks from 1; a list without the id adds nothing, and
    only the first place of an id within a list counts. Raises ``ValueError`` when ``weights`` are
    not one for each list, or ``k`` is negative.
    """
    if k < 0:
        raise ValueError("k must not be negative")
    shares = [1.0] * len(lists) if weights is None else list(weights)
    if len(shares) != len(lists):
        raise ValueError("one weight for each list")
    scores: dict[Id, float] = {}
    for ranked, weight in zip(lists, shares, strict=True):
        for rank, item in enumerate(dict.fromkeys(ranked), start=1):
            scores[item] = scores.get(item, 0.0) + weight / (k + rank)
    return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))
