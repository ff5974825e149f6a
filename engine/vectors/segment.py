"""Rows of the in-process index as arrays: vectors twice, whole and in coarse steps.

A search reads the coarse values of many rows and the whole vectors of a few. Coarse values are
eight-bit: ``vector - shift = step * coarse``, with a step for each row, so that nothing is cut
off. The shift is any vector in the middle of the rows; it only makes the steps small.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from engine.columns.table import Ints, Mask, Table, empty
from engine.types import Matrix, Vector

Coarse = npt.NDArray[np.int8]
Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int16]

TOP: Final = 127
SMALLEST_STEP: Final = 1e-9
SMALLEST_SQUARE: Final = 1e-6
CHUNK: Final = 8192
FIRST_CAPACITY: Final = 64


@dataclass(frozen=True, slots=True)
class Segment:
    """Arrays of equal length. ``serial`` numbers a version of a passage and is never reused.

    ``spread`` is one over the distance of a vector from its language's mean: what brings its
    score back to a cosine. It is one where there is no mean.
    """

    scope: Table
    serial: Ints
    language: Codes
    matrix: Matrix
    coarse: Coarse
    step: Floats
    spread: Floats

    def __len__(self) -> int:
        return len(self.scope)

    def part(self, rows: slice | Ints) -> Segment:
        """The same for some rows: views for a slice, copies for row numbers."""
        return Segment(
            scope=self.scope.part(rows),
            serial=self.serial[rows],
            language=self.language[rows],
            matrix=self.matrix[rows],
            coarse=self.coarse[rows],
            step=self.step[rows],
            spread=self.spread[rows],
        )

    def vectors(self) -> tuple[npt.NDArray[np.generic], ...]:
        """Every array but the scope columns, in the order of the fields."""
        return (self.serial, self.language, self.matrix, self.coarse, self.step, self.spread)

    def with_dead(self, rows: Ints) -> Segment:
        """The same with some rows dead. A copy of the marks: searches under way keep theirs."""
        alive: Mask = self.scope.alive.copy()
        alive[rows] = False
        return replace(self, scope=replace(self.scope, alive=alive))

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays, mapped files included."""
        return sum(column.nbytes for column in (*self.scope.columns(), *self.vectors()))


def blank(capacity: int, dim: int) -> Segment:
    """Room for rows, none of them alive."""
    return Segment(
        scope=empty(capacity),
        serial=np.zeros(capacity, np.int64),
        language=np.zeros(capacity, np.int16),
        matrix=np.empty((capacity, dim), np.float32),
        coarse=np.empty((capacity, dim), np.int8),
        step=np.ones(capacity, np.float32),
        spread=np.ones(capacity, np.float32),
    )


def _arrays(segment: Segment) -> tuple[npt.NDArray[np.generic], ...]:
    return (*segment.scope.columns(), *segment.vectors())


def coarsen(matrix: Matrix, shift: Vector, coarse: Coarse, step: Floats) -> None:
    """Fill ``coarse`` and ``step`` for the rows of ``matrix``."""
    for start in range(0, len(matrix), CHUNK):
        part = slice(start, start + CHUNK)
        moved = matrix[part] - shift
        steps = np.maximum(np.abs(moved).max(axis=1), SMALLEST_STEP) / TOP
        coarse[part] = np.rint(moved / steps[:, None])
        step[part] = steps


def middle(matrix: Matrix, sample: int = 20_000) -> Vector:
    """The mean of some rows, spread evenly: a shift for all of them."""
    if not len(matrix):
        return np.zeros(matrix.shape[1], np.float32)
    stride = max(1, len(matrix) // sample)
    found: Vector = matrix[::stride].mean(axis=0, dtype=np.float64).astype(np.float32)
    return found


def dots(coarse: Coarse, query: Coarse) -> Floats:
    """Products of coarse rows with one coarse query, exact."""
    if not len(coarse):
        return np.zeros(0, np.float32)
    try:
        import numkong
    except ImportError:
        return _plain_dots(coarse, query)
    rows = coarse if coarse.flags.c_contiguous else np.ascontiguousarray(coarse)
    found: Floats = np.asarray(numkong.cdist(query[None], rows, "dot"))[0].astype(np.float32)
    return found


def _plain_dots(coarse: Coarse, query: Coarse) -> Floats:
    found = np.empty(len(coarse), np.float32)
    wanted = query.astype(np.float32)
    for start in range(0, len(coarse), CHUNK):
        part = slice(start, start + CHUNK)
        found[part] = coarse[part].astype(np.float32) @ wanted
    return found


def spreads(segment: Segment, shift: Vector, means: Doubles) -> Floats:
    """One over the distance of each row from its language's mean (row ``language`` of ``means``).

    Taken from the coarse values: it serves the first, rough choice only.
    """
    found = np.ones(len(segment), np.float32)
    for code, mean in enumerate(means):
        if not mean.any():
            continue
        rows = np.flatnonzero(segment.language == code)
        coarse = segment.coarse if rows.size == len(segment) else segment.coarse[rows]
        probe, step = coarsened(mean)
        products = dots(coarse, probe) * (segment.step[rows] * np.float32(step))
        products += float(shift.astype(np.float64) @ mean)
        # Rows have length one: the square of the distance needs no more than the product.
        squares = 1.0 - 2.0 * products + float(mean @ mean)
        found[rows] = 1.0 / np.sqrt(np.maximum(squares, SMALLEST_SQUARE))
    return found


def coarsened(vector: Doubles) -> tuple[Coarse, float]:
    """One vector in coarse steps, and the step."""
    step = max(float(np.abs(vector).max()), SMALLEST_STEP) / TOP
    return np.rint(vector / step).astype(np.int8), step


class Tail:
    """Rows that came since the base was arranged. One writer at a time; the caller holds a lock."""

    def __init__(self, dim: int, *, expected: int = 0) -> None:
        self._dim = dim
        self._size = 0
        self._room = blank(max(FIRST_CAPACITY, expected), dim)
        self._row_of: dict[int, int] = {}

    def __len__(self) -> int:
        return self._size

    def rows(self) -> Segment:
        """The rows as they are now; a later change leaves them alone."""
        return self._room.part(slice(self._size)).with_dead(np.zeros(0, np.int64))

    def remove(self, passage_ids: Iterable[int]) -> None:
        """Mark rows dead; unknown ids are fine."""
        for passage_id in passage_ids:
            row = self._row_of.pop(passage_id, None)
            if row is not None:
                self._room.scope.alive[row] = False

    def put(self, added: Segment) -> None:
        """Append rows. Older rows of the same passages must be dead."""
        start, end = self._size, self._size + len(added)
        if end > len(self._room):
            larger = blank(max(end, 2 * len(self._room)), self._dim)
            for old, new in zip(_arrays(self._room), _arrays(larger), strict=True):
                new[: self._size] = old[: self._size]
            self._room = larger
        for column, values in zip(_arrays(self._room), _arrays(added), strict=True):
            column[start:end] = values
        self._size = end
        self._row_of.update(zip(added.scope.passage.tolist(), range(start, end), strict=True))

    def respread(self, shift: Vector, means: Doubles) -> None:
        """Measure the rows anew after the means changed."""
        size = self._size
        fresh = spreads(self._room.part(slice(size)), shift, means)
        self._room = replace(self._room, spread=np.concatenate([fresh, self._room.spread[size:]]))
