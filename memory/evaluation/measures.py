"""Recall, nDCG, MRR and percentiles, as TREC evaluation defines them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence


def recall(ranked: Sequence[str], gains: Mapping[str, float], depth: int) -> float:
    """Share of the relevant documents among the first ``depth``."""
    return sum(document in gains for document in ranked[:depth]) / len(gains)


def ndcg(ranked: Sequence[str], gains: Mapping[str, float], depth: int = 10) -> float:
    """Discounted gain with a log2 discount, over that of the best order (Järvelin, 2002)."""
    gained = sum(
        gains.get(document, 0.0) / math.log2(rank + 1)
        for rank, document in enumerate(ranked[:depth], start=1)
    )
    best = sorted(gains.values(), reverse=True)[:depth]
    ideal = sum(gain / math.log2(rank + 1) for rank, gain in enumerate(best, start=1))
    return gained / ideal


def reciprocal_rank(ranked: Sequence[str], gains: Mapping[str, float], depth: int = 10) -> float:
    """One over the rank of the first relevant document, 0 when it is not in the first ``depth``."""
    for rank, document in enumerate(ranked[:depth], start=1):
        if document in gains:
            return 1 / rank
    return 0.0


def percentile(values: Sequence[float], share: float) -> float:
    """Nearest-rank percentile; ``share`` from 0 to 1."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
