"""Score fusion: a convex combination of normalised scores.

Bruch, Gai and Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval" (2023). Cosines are
brought to 0..1 between the least and the greatest of the list, because a model's cosines fill
only a part of their range; BM25 scores are divided by the greatest, because 0 means no match.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.types import Candidate

VECTOR_SHARE = 0.5


def combine(
    vector: Sequence[Candidate], keyword: Sequence[Candidate], *, vector_share: float = VECTOR_SHARE
) -> list[tuple[int, float]]:
    """Fuse a list of cosines and one of BM25 scores: ``(passage id, score 0..1)``, best first.

    A passage that is missing from a list gets 0 from it. Ties are broken by id.
    """
    fused: dict[int, float] = {}
    if vector:
        least = min(candidate.score for candidate in vector)
        spread = max(candidate.score for candidate in vector) - least
        for candidate in vector:
            share = (candidate.score - least) / spread if spread else 1.0
            fused[candidate.passage_id] = vector_share * share
    best = max((candidate.score for candidate in keyword), default=0.0)
    for candidate in keyword:
        share = candidate.score / best if best > 0 else 1.0
        fused[candidate.passage_id] = (
            fused.get(candidate.passage_id, 0.0) + (1 - vector_share) * share
        )
    return sorted(fused.items(), key=lambda pair: (-pair[1], pair[0]))
