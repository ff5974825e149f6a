"""Small priors that know nothing of the query: how recent a memory is, and how often it was used.

Both are off by default (weight 0): on no development set do they help, and who wants the newest
statement first usually wants it for a reason a search cannot know.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from engine.types import Place

HALF_LIFE_MS: Final = 30 * 86_400_000.0
"""After 30 days a memory counts half as recent."""


@dataclass(frozen=True, slots=True)
class Priors:
    """Weights, 0 to 1, beside the 1 of the search score."""

    recency: float = 0.0
    use: float = 0.0

    @property
    def are_on(self) -> bool:
        """Whether any of them does something."""
        return self.recency > 0 or self.use > 0


def apply(
    ordered: Sequence[tuple[int, float]],
    places: Mapping[int, Place],
    uses: Mapping[int, int],
    priors: Priors,
    *,
    now_ms: int,
) -> list[tuple[int, float]]:
    """The order with priors counted in.

    ``score' = (score + r · 2^(-age / half-life) + u · log(1 + uses) / log(1 + most uses)) /
    (1 + r + u)``; the score itself should be within 0..1.
    """
    most = max(uses.values(), default=0)
    scored: list[tuple[int, float]] = []
    for passage_id, score in ordered:
        place = places.get(passage_id)
        if place is not None:
            age_ms = max(0, now_ms - place.occurred_ms)
            score += priors.recency * 2.0 ** (-age_ms / HALF_LIFE_MS)
            used = uses.get(passage_id, 0)
            score += priors.use * math.log1p(used) / math.log1p(most) if most else 0.0
        scored.append((passage_id, score / (1 + priors.recency + priors.use)))
    return sorted(scored, key=lambda pair: (-pair[1], pair[0]))
