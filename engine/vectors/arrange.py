"""Making a new base out of the old one and its tail: rows in order, coarse values, graphs."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from engine.columns.table import Ints, Table
from engine.types import Matrix
from engine.vectors.base import Base, Words, arrangement, base_of
from engine.vectors.centres import Centres
from engine.vectors.graph import Graph, Stopped, add, grown, new_index
from engine.vectors.segment import CHUNK, Segment, coarsen, middle, spreads
from engine.vectors.view import View

DEAD_SHARE: Final = 4
"""A graph with more than one dead row for this many live ones is built anew."""
STALE_SHARE: Final = 20
"""One with more than one stale row in this many, too."""


class Stop(Exception):
    """The work was asked to end."""


@dataclass(frozen=True, slots=True)
class Tuning:
    """When the index does what; the defaults are measured, tests use small ones.

    ``large``: rows of an owner from which on they get a graph. ``loose``: rows out of order
    before all are arranged anew, at least; otherwise one in ``loose_share`` of the base, but no
    more than ``loose_most``. ``proposal``: a graph is asked for no more rows than would cost a
    scan of its block, at this many rows scanned for one proposed.
    """

    large: int = 20_000
    loose: int = 5_000
    loose_share: int = 5
    loose_most: int = 50_000
    proposal: int = 150

    def is_loose(self, base: Base, tail: int) -> bool:
        """Whether the rows deserve to be arranged."""
        share = min(len(base.rows) // self.loose_share, self.loose_most)
        return tail + base.dead > max(self.loose, share)


def is_outdated(stale: Ints, block: slice) -> bool:
    """Whether a graph has too many rows in the wrong place."""
    return bool(stale.size * STALE_SHARE > block.stop - block.start)


def arranged(view: View, tuning: Tuning, *, target: Path | None, stopped: Stopped) -> Base:
    """A new base of all live rows; its matrix is mapped from ``target`` where that is given.

    Raises ``Stop`` when asked to end.
    """
    old, tail = view.base.rows, view.tail
    scope = Table(
        *(
            np.concatenate(pair)
            for pair in zip(old.scope.columns(), tail.scope.columns(), strict=True)
        )
    )
    serial = np.concatenate([old.serial, tail.serial])
    order = arrangement(scope, serial, tuning.large)
    matrix = room(order.size, view.base.shift.size, target)
    _gather(matrix, order, (old.matrix, tail.matrix), stopped)
    shift = middle(matrix)
    coarse = np.empty(matrix.shape, np.int8)
    step = np.empty(order.size, np.float32)
    coarsen(matrix, shift, coarse, step)
    rows = Segment(
        scope=scope.part(order),
        serial=serial[order],
        language=np.concatenate([old.language, tail.language])[order],
        matrix=matrix,
        coarse=coarse,
        step=step,
        spread=np.ones(order.size, np.float32),
    )
    if view.centres is not None:
        means = view.centres.table(view.words.languages, shift.size)
        rows = replace(rows, spread=spreads(rows, shift, means))
    base = base_of(rows, shift, large=tuning.large, next_serial=view.next_serial)
    graphs = {
        number: made
        for number in base.large_blocks()
        if (made := _graph(view, base, number, stopped)) is not None
    }
    return replace(base, graphs=graphs)


def room(count: int, dim: int, target: Path | None) -> Matrix:
    """A matrix to fill, in a new file of a folder where that is given. Raises ``OSError``."""
    if target is None or not count:
        return np.empty((count, dim), np.float32)
    path = target / "matrix.npy"
    mapped: Matrix = np.lib.format.open_memmap(
        path, mode="w+", dtype=np.float32, shape=(count, dim)
    )
    _reserve(path)
    return mapped


def _reserve(path: Path) -> None:
    """Have the disk give a file all its room now. Raises ``OSError`` where it has not got it.

    A page that finds no room when it is written would end the process.
    """
    if not hasattr(os, "posix_fallocate"):
        return
    with path.open("r+b") as handle:
        os.posix_fallocate(handle.fileno(), 0, path.stat().st_size)


def _gather(into: Matrix, order: Ints, matrices: tuple[Matrix, Matrix], stopped: Stopped) -> None:
    border = len(matrices[0])
    for start in range(0, order.size, CHUNK):
        if stopped():
            raise Stop
        chosen = order[start : start + CHUNK]
        is_old = chosen < border
        rows = into[start : start + chosen.size]
        rows[is_old] = matrices[0][chosen[is_old]]
        rows[~is_old] = matrices[1][chosen[~is_old] - border]


def _graph(view: View, base: Base, number: int, stopped: Stopped) -> Graph | None:
    """The graph of a block: the old one with what is new, or one from scratch.

    None where the library is not installed: the block is scanned then.
    """
    block = base.block(number)
    rows = base.rows.part(block)
    old = view.base.graphs.get(number)
    if old is not None and _may_grow(view, number, old, rows):
        fresh = np.flatnonzero(rows.serial >= old.covered)
        if not fresh.size:
            return old
        index, centres, rows = grown(old), old.centres, rows.part(fresh)
    else:
        try:
            index = new_index(base.shift.size)
        except ImportError:
            return None
        centres = _frozen(view.centres, view.words)
    add(index, rows, list(view.words.languages), centres, stopped)
    if stopped():
        raise Stop
    return Graph(index, centres, base.next_serial)


def _may_grow(view: View, number: int, graph: Graph, rows: Segment) -> bool:
    known = int(np.count_nonzero(rows.serial < graph.covered))
    if (len(graph) - known) * DEAD_SHARE > len(rows):
        return False
    return not is_outdated(view.stale.get(number, np.zeros(0, np.int64)), view.base.block(number))


def _frozen(centres: Centres | None, words: Words) -> Centres | None:
    """The means as they are for the languages known now."""
    if centres is None:
        return None
    names = words.languages
    return Centres({word: mean for word in names if (mean := centres.of(word)) is not None})
