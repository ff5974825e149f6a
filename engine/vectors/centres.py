"""The mean vector of each language, and vectors measured from it.

Multilingual models place texts by language first. Taking the mean of each language away from
passages and queries lets a query find passages of another language. This is all that is known of
it; where the means come from is the table's business.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from engine.types import Vector

SHARE: Final = 0.8
"""How much of a mean is taken away: the whole costs a little within one language, half of it leaves
languages apart (docs/benchmarks.md)."""
FEWEST: Final = 64
"""Vectors a language needs before its own mean is used."""
STAND_INS: Final = {"zh": "ja", "ja": "zh"}
SMALLEST_NORM: Final = 1e-6


@dataclass(frozen=True)
class Centres:
    """Means by language. ``stored`` are the index's own, ``packaged`` come with the model."""

    stored: Mapping[str, Vector] = field(default_factory=dict)
    packaged: Mapping[str, Vector] = field(default_factory=dict)

    def of(self, language: str) -> Vector | None:
        """The mean for a language, or None: its vectors stay as they are.

        Chinese and Japanese stand in for one another, before a packaged mean does.
        """
        other = STAND_INS.get(language, "")
        for means, name in (
            (self.stored, language),
            (self.stored, other),
            (self.packaged, language),
            (self.packaged, other),
        ):
            if name in means:
                return means[name]
        return None

    def table(self, languages: Mapping[str, int], dim: int) -> npt.NDArray[np.float64]:
        """What is taken away as rows by language code, shape ``(languages, dim)``; zero where
        there is no mean."""
        rows = np.zeros((max(1, len(languages)), dim), np.float64)
        for language, code in list(languages.items()):
            mean = self.of(language)
            if mean is not None and code < len(rows):
                rows[code] = SHARE * mean
        return rows

    def centred(self, vector: Vector, language: str) -> Vector:
        """The vector measured from its language's mean, at length one, float32."""
        mean = self.of(language)
        if mean is None:
            return vector
        moved = vector.astype(np.float64) - SHARE * mean
        norm = float(np.linalg.norm(moved))
        if norm < SMALLEST_NORM:
            return vector
        scaled: Vector = (moved / norm).astype(np.float32)
        return scaled
