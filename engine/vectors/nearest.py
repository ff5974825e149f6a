"""The nearest rows of a matrix, exactly."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.types import Candidate, Matrix, Vector
from engine.vectors.columns import Ints, Table

GATHER_BELOW = 4
"""Below one row in this many, rows are gathered; above, the whole matrix is multiplied."""
BLOCK = 8192
ROUNDING = 1e-5
"""More than float32 rounding can move a score; rows this near the last place are scored again."""


def nearest(table: Table, rows: Ints, query: Vector, limit: int) -> list[Candidate]:
    """The best ``limit`` of ``rows`` by cosine, best first, ties by passage id."""
    if limit <= 0 or rows.size == 0:
        return []
    rough = _scores(table.matrix, rows, query)
    if rows.size > limit:
        last_place = np.partition(rough, rows.size - limit)[rows.size - limit]
        rows = rows[rough >= last_place - ROUNDING]
    # Equal vectors get equal scores here, wherever they lie in the matrix: ties are real ties.
    scores = _exact(table.matrix, rows, query)
    ids = table.passage[rows]
    order = np.lexsort((ids, -scores))[:limit]
    return [
        Candidate(int(ids[place]), rank, float(scores[place]))
        for rank, place in enumerate(order, start=1)
    ]


def _scores(matrix: Matrix, rows: Ints, query: Vector) -> npt.NDArray[np.float32]:
    if rows.size * GATHER_BELOW >= len(matrix):
        every: npt.NDArray[np.float32] = matrix @ query
        return every if rows.size == len(matrix) else every[rows]
    scores = np.empty(rows.size, np.float32)
    for start in range(0, rows.size, BLOCK):
        part = rows[start : start + BLOCK]
        scores[start : start + BLOCK] = matrix[part] @ query
    return scores


def _exact(matrix: Matrix, rows: Ints, query: Vector) -> npt.NDArray[np.float64]:
    wanted = query.astype(np.float64)
    scores = np.empty(rows.size, np.float64)
    for start in range(0, rows.size, BLOCK):
        part = rows[start : start + BLOCK]
        scores[start : start + BLOCK] = (matrix[part] * wanted).sum(axis=1)
    return np.clip(scores, -1.0, 1.0)
