"""A graph of near neighbours over the rows of one owner (HNSW, by the usearch library).

It holds eight-bit vectors measured from the means of its languages, and answers with row serials.
It only proposes rows: their scores are taken from the whole vectors afterwards. Eight bits make it
half the size and built several times as fast as sixteen do, with no loss of recall.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from engine import native
from engine.columns.table import Ints
from engine.types import Matrix, Vector
from engine.vectors.centres import Centres
from engine.vectors.segment import Segment

CONNECTIVITY: Final = 16
EFFORT_ADD: Final = 128
EFFORT_SEARCH: Final = (256, 512, 2048)
"""Neighbours kept in view by a search: at least, at 100,000 rows, at most. The middle one finds
99 % of the best twenty there; more rows want more."""
EFFORT_GROWTH: Final = 0.6
BATCH: Final = 512
SAME: Final = 1e-6

Keys = npt.NDArray[np.uint64]
Stopped = Callable[[], bool]


@dataclass(frozen=True)
class Graph:
    """A finished graph; ``covered`` is the first serial it knows nothing of.

    ``centres`` are the means its vectors were measured from, None for plain ones. Safe for many
    threads: nothing changes it.
    """

    index: Any
    centres: Centres | None
    covered: int

    def __post_init__(self) -> None:
        self.index.expansion_search = effort(len(self.index))

    def __len__(self) -> int:
        return len(self.index)

    @property
    def nbytes(self) -> int:
        """Size of its file."""
        return int(self.index.serialized_length)

    def nearest(
        self, query: Vector, language: str, *, count: int, wanted: int
    ) -> tuple[Ints, bool]:
        """Serials of the ``count`` nearest rows; whether equals of the wanted ones were left out.

        They were when the last one found is as near as the last of those ``wanted``.
        """
        if self.centres is not None:
            query = self.centres.centred(query, language)
        found = self.index.search(query, count, threads=1)
        distances = found.distances
        cut = wanted <= len(distances) < len(self)
        cut = cut and distances[-1] - distances[wanted - 1] < SAME
        return found.keys.astype(np.int64), bool(cut)

    def save(self, path: Path) -> None:
        """Write the file."""
        self.index.save(os.fspath(path))


def effort(rows: int) -> int:
    """How many neighbours a search over so many rows keeps in view."""
    least, middle, most = EFFORT_SEARCH
    return max(least, min(most, round(middle * math.pow(rows / 100_000, EFFORT_GROWTH))))


def new_index(dim: int) -> Any:
    """An empty index of the library."""
    return native.graphs().Index(
        ndim=dim,
        metric="ip",
        dtype="i8",
        connectivity=CONNECTIVITY,
        expansion_add=EFFORT_ADD,
    )


def read(path: Path, dim: int) -> Any:
    """A file as an index that stays in the file. Raises ``ValueError`` when it is not one."""
    found = native.graphs().Index.restore(os.fspath(path), view=True)
    if found is None or found.ndim != dim:
        raise ValueError("The graph file is of another kind.")
    return found


def grown(graph: Graph) -> Any:
    """A copy of a graph's index that rows can be added to."""
    copied = graph.index.copy()
    copied.expansion_add = EFFORT_ADD
    return copied


def add(
    index: Any, rows: Segment, languages: list[str], centres: Centres | None, stopped: Stopped
) -> None:
    """Add rows in small steps; ``languages`` are the words of their codes. Ends when stopped."""
    means = None
    if centres is not None:
        means = centres.table({word: code for code, word in enumerate(languages)}, index.ndim)
    for start in range(0, len(rows), BATCH):
        if stopped():
            return
        part = slice(start, start + BATCH)
        vectors: Matrix = rows.matrix[part]
        if means is not None:
            moved = vectors - means[rows.language[part]]
            norms = np.maximum(np.linalg.norm(moved, axis=1, keepdims=True), 1e-6)
            vectors = (moved / norms).astype(np.float32)
        index.add(rows.serial[part].astype(np.uint64), vectors, threads=1)
