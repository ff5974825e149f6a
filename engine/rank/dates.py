"""What a question that names a time adds: memories of that time come before others."""

from __future__ import annotations

from collections.abc import Collection, Sequence

WEIGHT = 0.3
"""Beside the 1 of the search score: puts the day asked for first, without drowning the rest."""


def prefer(
    ordered: Sequence[tuple[int, float]], within: Collection[int]
) -> list[tuple[int, float]]:
    """The order with memories of the time asked for preferred; those not found yet are added.

    ``(score + w · is within) / (1 + w)``, scores within 0..1.
    """
    scores = dict(ordered)
    for passage_id in within:
        scores[passage_id] = scores.get(passage_id, 0.0) + WEIGHT
    scored = [(passage_id, score / (1 + WEIGHT)) for passage_id, score in scores.items()]
    return sorted(scored, key=lambda pair: (-pair[1], pair[0]))
