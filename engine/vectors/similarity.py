"""Cosine, and the checks a vector passes before it is stored or searched."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from engine.errors import DimensionMismatch, ZeroVector
from engine.types import Vector

SMALLEST_NORM = 1e-12


def cosine(a: Sequence[float] | Vector, b: Sequence[float] | Vector) -> float:
    """Cosine of the angle between two vectors of any length, -1 to 1.

    Raises ``DimensionMismatch`` and ``ZeroVector``.
    """
    first, second = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if first.shape != second.shape:
        raise DimensionMismatch("The vectors have different dimensions.")
    product = float(np.dot(_unit(first), _unit(second)))
    return min(1.0, max(-1.0, product))


def distance(a: Sequence[float] | Vector, b: Sequence[float] | Vector) -> float:
    """Euclidean distance of two vectors as they are. Raises ``DimensionMismatch``."""
    first, second = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if first.shape != second.shape:
        raise DimensionMismatch("The vectors have different dimensions.")
    return float(np.linalg.norm(first - second))


def closeness(apart: float) -> float:
    """The first system's score of a distance: ``1 / (1 + distance)``, 1 for equal vectors."""
    return 1.0 / (1.0 + apart)


def unit(vector: Sequence[float] | Vector, dim: int) -> Vector:
    """The vector at length one, as float32.

    Raises ``DimensionMismatch`` when it has not ``dim`` values, ``ZeroVector`` when it has no
    direction.
    """
    values = np.asarray(vector, np.float64)
    if values.shape != (dim,):
        raise DimensionMismatch(f"The vector has shape {values.shape}, the index {dim} dimensions.")
    scaled: Vector = _unit(values).astype(np.float32)
    return scaled


def _unit(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    norm = float(np.linalg.norm(values))
    if not np.isfinite(norm) or norm < SMALLEST_NORM:
        raise ZeroVector("The vector has no direction: it is zero or not finite.")
    return values / norm
