"""Vectors measured from the means of their languages, many at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.types import Matrix
from engine.vectors.centres import SHARE, SMALLEST_NORM, Centres


def centred_rows(centres: Centres, matrix: Matrix, languages: Sequence[str]) -> Matrix:
    """``Centres.centred`` for rows: each measured from its language's mean, at length one."""
    means = {language: centres.of(language) for language in set(languages)}
    if not any(mean is not None for mean in means.values()):
        return matrix
    moved = matrix.astype(np.float64)
    names = np.array(languages)
    for language, mean in means.items():
        if mean is not None:
            moved[names == language] -= SHARE * mean.astype(np.float64)
    norms = np.linalg.norm(moved, axis=1, keepdims=True)
    # A vector that is the mean itself has no direction left: it stays as it was.
    kept = norms < SMALLEST_NORM
    made: Matrix = np.where(kept, matrix, moved / np.where(kept, 1.0, norms)).astype(np.float32)
    return made
