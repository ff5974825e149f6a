"""From token states to one unit vector per text."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.errors import EmbeddingFailed
from engine.types import Matrix

SMALLEST_NORM = 1e-12


def mean_pool(hidden: npt.NDArray[np.float32], mask: npt.NDArray[np.int64]) -> Matrix:
    """Mean of the token states whose mask is 1; zeros where no token counts. Not normalised.

    ``hidden`` has shape ``(texts, tokens, dim)``, ``mask`` ``(texts, tokens)``.
    """
    weights = mask.astype(np.float32)
    counts = np.maximum(weights.sum(axis=1, keepdims=True), 1.0)
    pooled: Matrix = np.einsum("ntd,nt->nd", hidden, weights) / counts
    return pooled


def unit_rows(rows: npt.NDArray[np.floating]) -> Matrix:
    """Rows divided by their length, as float32.

    Raises ``EmbeddingFailed`` (``invalid_response``) for a row that is not finite or has no length.
    """
    exact = rows.astype(np.float64)
    if not np.isfinite(exact).all():
        raise EmbeddingFailed("The model gave a value that is no number.", code="invalid_response")
    norms = np.linalg.norm(exact, axis=1, keepdims=True)
    if not (np.isfinite(norms).all() and (norms > SMALLEST_NORM).all()):
        raise EmbeddingFailed("The model gave a vector of length zero.", code="invalid_response")
    unit: Matrix = (exact / norms).astype(np.float32)
    return unit
