"""The arranged rows of the index: one block of rows for each owner or vault."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from engine.columns.table import NO_VAULT, SHARED, Ints, Table
from engine.types import Vector
from engine.vectors.graph import Graph
from engine.vectors.segment import Segment

NOTHING: Final[slice] = slice(0, 0)


@dataclass(frozen=True, slots=True)
class Words:
    """Codes of the words in the columns. They only grow."""

    types: dict[str, int] = field(default_factory=dict)
    sessions: dict[str, int] = field(default_factory=dict)
    languages: dict[str, int] = field(default_factory=dict)

    def copy(self) -> Words:
        """The words as they are now."""
        return Words(dict(self.types), dict(self.sessions), dict(self.languages))


def owner_block(owner: int) -> int:
    """Number of the block that holds what an owner has outside of vaults."""
    return 2 * owner


def vault_block(vault: int) -> int:
    """Number of the block of a vault."""
    return 2 * vault + 1


def block_numbers(scope: Table) -> Ints:
    """The block each row belongs to."""
    numbers: Ints = np.where(scope.vault == NO_VAULT, 2 * scope.owner, 2 * scope.vault + 1)
    return numbers


def arrangement(scope: Table, serial: Ints, large: int) -> Ints:
    """Live rows in the order of a base: blocks of ``large`` rows or more last, each by serial."""
    alive = np.flatnonzero(scope.alive)
    numbers = block_numbers(scope)[alive]
    _, place, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    order: Ints = alive[np.lexsort((serial[alive], place, counts[place] >= large))]
    return order


@dataclass(frozen=True, slots=True)
class Base:
    """Rows in the order of ``arrangement``, and the graphs of large blocks by block number.

    ``small_end`` is where the large blocks begin. ``position`` is the place in the change log up
    to which the rows were known to be complete, ``token`` names the files they are mapped from.
    """

    rows: Segment
    shift: Vector
    numbers: Ints
    starts: Ints
    ends: Ints
    small_end: int
    shared: Ints
    by_passage: Ints
    graphs: Mapping[int, Graph]
    next_serial: int
    dead: int = 0
    position: int = 0
    token: str = ""

    def block(self, number: int) -> slice:
        """Rows of a block."""
        place = int(np.searchsorted(self.numbers, number))
        if place == len(self.numbers) or self.numbers[place] != number:
            return NOTHING
        return slice(int(self.starts[place]), int(self.ends[place]))

    def large_blocks(self) -> list[int]:
        """Numbers of the blocks that deserve a graph."""
        return [int(number) for number in self.numbers[self.starts >= self.small_end]]

    def find(self, passages: Iterable[int]) -> Ints:
        """Live rows of passages; unknown ids are left out."""
        wanted = np.fromiter(passages, np.int64)
        known = self.rows.scope.passage
        if not wanted.size or not known.size:
            return np.zeros(0, np.int64)
        place = np.searchsorted(known, wanted, sorter=self.by_passage)
        rows = self.by_passage[np.minimum(place, known.size - 1)]
        rows = rows[known[rows] == wanted]
        found: Ints = rows[self.rows.scope.alive[rows]]
        return found

    def rows_of(self, serials: Ints, block: slice) -> Ints:
        """Rows of serials within a block, in the order of ``serials``; others are left out."""
        known = self.rows.serial[block]
        if not known.size:
            return np.zeros(0, np.int64)
        place = np.minimum(np.searchsorted(known, serials), known.size - 1)
        found: Ints = place[known[place] == serials] + block.start
        return found

    def without(self, rows: Ints) -> Base:
        """The same with some live rows dead."""
        if not rows.size:
            return self
        return replace(self, rows=self.rows.with_dead(rows), dead=self.dead + rows.size)


def base_of(rows: Segment, shift: Vector, *, large: int, next_serial: int) -> Base:
    """A base over live rows that are in the order of ``arrangement`` with the same ``large``."""
    numbers = block_numbers(rows.scope)
    starts = np.flatnonzero(np.diff(numbers, prepend=numbers[:1] - 1)) if len(rows) else numbers
    ends = np.append(starts[1:], len(rows)) if len(rows) else numbers
    big = np.flatnonzero(ends - starts >= large)
    by_number = np.argsort(numbers[starts])
    return Base(
        rows=rows,
        shift=shift,
        numbers=numbers[starts][by_number],
        starts=starts[by_number],
        ends=ends[by_number],
        small_end=int(starts[big[0]]) if big.size else len(rows),
        shared=np.flatnonzero(rows.scope.flags & SHARED),
        by_passage=np.argsort(rows.scope.passage),
        graphs={},
        next_serial=next_serial,
    )
