"""Score fusion: a weighted mean of normalised scores over any number of lists.

Bruch, Gai and Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval" (2023). Cosines are
brought to 0..1 between the least and the greatest of the list, because a model's cosines fill
only a part of their range; BM25 scores are divided by the greatest, because 0 means no match.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from engine.types import Candidate


@dataclass(frozen=True, slots=True)
class ScoreList:
    """Normalised scores, 0..1, of one list, and how much the list counts.

    ``unknown`` are passages the list cannot judge (words say nothing about a text in another
    script): that they are missing from it, or low in it, is no evidence against them.
    """

    scores: Mapping[int, float]
    weight: float = 1.0
    unknown: Collection[int] = frozenset()


def by_range(candidates: Sequence[Candidate]) -> dict[int, float]:
    """Scores between those of the worst and the best candidate."""
    if not candidates:
        return {}
    least = min(candidate.score for candidate in candidates)
    spread = max(candidate.score for candidate in candidates) - least
    return {c.passage_id: (c.score - least) / spread if spread else 1.0 for c in candidates}


def by_best(candidates: Sequence[Candidate]) -> dict[int, float]:
    """Scores as shares of the best one."""
    best = max((candidate.score for candidate in candidates), default=0.0)
    return {c.passage_id: c.score / best if best > 0 else 1.0 for c in candidates}


def combine(lists: Sequence[ScoreList]) -> list[tuple[int, float]]:
    """Fuse lists: ``(passage id, score 0..1)``, best first, ties by id.

    A passage that is missing from a list gets 0 from it; of one that some lists cannot judge, the
    mean over the others counts when that is higher.
    """
    total = sum(one.weight for one in lists)
    if total <= 0:
        return []
    gained: dict[int, float] = {}
    for one in lists:
        for passage_id, score in one.scores.items():
            gained[passage_id] = gained.get(passage_id, 0.0) + one.weight * score
    fused = {passage_id: score / total for passage_id, score in gained.items()}
    for passage_id in {key for one in lists for key in one.unknown}.intersection(fused):
        judges = [one for one in lists if passage_id not in one.unknown]
        weight = sum(one.weight for one in judges)
        if weight > 0:
            known = sum(one.weight * one.scores.get(passage_id, 0.0) for one in judges) / weight
            fused[passage_id] = max(fused[passage_id], known)
    return sorted(fused.items(), key=lambda pair: (-pair[1], pair[0]))
