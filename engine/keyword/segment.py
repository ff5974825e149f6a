"""Postings of some passages: which terms each holds, how often, and its scope columns.

A segment never changes. A passage that changed is dead in its old segment and alive in a new one;
``merging`` makes one segment of several and leaves the dead out.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from engine.columns.table import Ints, Table
from engine.keyword.vocabulary import Vocabulary

Rows = npt.NDArray[np.int32]
Weights = npt.NDArray[np.uint16]
Lengths = npt.NDArray[np.float32]

MAX_WEIGHT = np.iinfo(np.uint16).max
"""More occurrences than this count as this: BM25 is long saturated there."""

FEW_DEAD = 8
"""Fewer dead rows than one for so many postings are looked for, instead of looking at each."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Arrays of ``n`` passages and ``p`` postings.

    The postings of term ``t`` are ``starts[t]:starts[t + 1]`` of ``rows`` (ascending) and
    ``weights`` (occurrences, times the weight of their field). ``lengths`` are terms in all
    fields. ``order`` sorts the rows by passage id.
    """

    table: Table
    lengths: Lengths
    terms: Vocabulary
    starts: Ints
    rows: Rows
    weights: Weights
    order: Ints
    total: float
    """Terms in all live passages."""
    dead_rows: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    """Ascending."""
    counted: dict[int, int] = field(default_factory=dict, compare=False)
    """Live postings of terms, as far as somebody asked; only used when some rows are dead."""

    def __len__(self) -> int:
        return len(self.table)

    @property
    def dead(self) -> int:
        """Passages that are dead."""
        return int(self.dead_rows.size)

    @property
    def live(self) -> int:
        """Passages that are alive."""
        return len(self) - self.dead

    @property
    def nbytes(self) -> int:
        """Memory of the arrays."""
        arrays = (*self.table.columns(), self.lengths, self.starts, self.rows, self.weights)
        return sum(array.nbytes for array in (*arrays, self.order)) + self.terms.nbytes

    def find(self, passage_ids: Ints) -> Ints:
        """Rows of those passages that are alive here."""
        if not len(self) or not passage_ids.size:
            return np.zeros(0, np.int64)
        held = self.table.passage
        places = np.searchsorted(held, passage_ids, sorter=self.order)
        found = self.order[np.minimum(places, len(self) - 1)]
        rows: Ints = found[(held[found] == passage_ids) & self.table.alive[found]]
        return rows

    def without(self, rows: Ints) -> Segment:
        """The same segment with some live rows dead."""
        if not rows.size:
            return self
        alive = self.table.alive.copy()
        alive[rows] = False
        return replace(
            self,
            table=replace(self.table, alive=alive),
            total=self.total - summed(self.lengths[rows]),
            dead_rows=np.sort(np.concatenate((self.dead_rows, rows))),
            counted={},
        )

    def frequency(self, term: int) -> int:
        """Live passages that hold a term."""
        rows = self.rows[self.starts[term] : self.starts[term + 1]]
        if not self.dead:
            return rows.size
        if term not in self.counted:
            self.counted[term] = self._live_of(rows)
        return self.counted[term]

    def _live_of(self, rows: Rows) -> int:
        """How many of some ascending rows are alive."""
        if self.dead * FEW_DEAD > rows.size:
            return int(np.count_nonzero(self.table.alive[rows]))
        dead = self.dead_rows.astype(rows.dtype)
        at = np.minimum(np.searchsorted(rows, dead), rows.size - 1)
        return rows.size - int(np.count_nonzero(rows[at] == dead))

    def postings(self, term: int) -> tuple[Rows, Weights]:
        """Rows (dead ones too) and weights of a term."""
        part = slice(int(self.starts[term]), int(self.starts[term + 1]))
        return self.rows[part], self.weights[part]

    def postings_of(self, terms: range) -> tuple[Rows, Weights]:
        """Rows and summed weights of passages that hold any of some neighbouring terms."""
        part = slice(int(self.starts[terms.start]), int(self.starts[terms.stop]))
        rows, places = np.unique(self.rows[part], return_inverse=True)
        sums = np.bincount(places, weights=self.weights[part], minlength=rows.size)
        return rows, np.minimum(sums, MAX_WEIGHT).astype(np.uint16)


def by_passage(table: Table) -> Ints:
    """The ``order`` of a segment with these rows."""
    return np.argsort(table.passage, kind="stable")


def summed(lengths: Lengths) -> float:
    """Terms in passages of these lengths."""
    return float(lengths.sum(dtype=np.float64))
