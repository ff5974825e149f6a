"""The bare libraries on the same data: what a search costs with nothing around it."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.speed import vec0
from benchmarks.speed.vectors import DIM
from engine import native
from engine.types import Matrix, Vector

Ids = Sequence[int]
PUNCTUATION = {
    code: 0xE000 + code for code in range(128) if not chr(code).isalnum() and chr(code) != " "
}
"""FTS5 splits at ASCII punctuation; moved to the private use area it is part of a term."""

PRAGMAS = "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA cache_size=-65536;"


class RawFts5:
    """One table of FTS5 with one column of terms, ordered by ``bm25``; no scope, no weights."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "fts5.sqlite3"
        self._database = sqlite3.connect(self.path)
        self._database.executescript(PRAGMAS)
        self._database.execute("CREATE VIRTUAL TABLE raw USING fts5(body, tokenize='ascii')")

    def add(self, rows: Iterable[tuple[int, Iterable[str]]]) -> None:
        """Store rows of a number and its terms in one transaction."""
        ready = [(number, " ".join(terms).translate(PUNCTUATION)) for number, terms in rows]
        with self._database:
            self._database.executemany("INSERT INTO raw (rowid, body) VALUES (?, ?)", ready)

    @property
    def size_mb(self) -> float:
        """What it takes on disk."""
        return _size_mb(self._database, self.path)

    def search(self, terms: Sequence[str], limit: int) -> Ids:
        """Numbers of the best rows that hold any of the terms."""
        expression = " OR ".join(f'"{term.translate(PUNCTUATION)}"' for term in terms)
        rows = self._database.execute(
            "SELECT rowid FROM raw WHERE raw MATCH ? ORDER BY bm25(raw) LIMIT ?",
            (expression, limit),
        )
        return [row[0] for row in rows]


class RawScan:
    """numpy: the product of all vectors with one, and the best of it."""

    def __init__(self, vectors: Matrix) -> None:
        self._vectors = vectors

    def search(self, vector: Vector, limit: int) -> Ids:
        """Numbers of the nearest vectors, nearest first."""
        return nearest(self._vectors @ vector, limit)


class RawVec0:
    """sqlite-vec: a ``vec0`` table of float32 with cosine distance, as its guide shows it.

    Raises ``ImportError`` or ``OSError`` where it cannot be used.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "vec0.sqlite3"
        self._database = vec0.connect(self.path)
        self._database.executescript(PRAGMAS)
        self._database.execute(
            f"CREATE VIRTUAL TABLE raw USING vec0(vector float[{DIM}] distance_metric=cosine)"
        )

    def add(self, start: int, vectors: Matrix) -> None:
        """Store vectors numbered from ``start`` in one transaction."""
        rows = [(start + place, vector.tobytes()) for place, vector in enumerate(vectors)]
        with self._database:
            self._database.executemany("INSERT INTO raw (rowid, vector) VALUES (?, ?)", rows)

    @property
    def size_mb(self) -> float:
        """What it takes on disk."""
        return _size_mb(self._database, self.path)

    def search(self, vector: Vector, limit: int) -> Ids:
        """Numbers of the nearest vectors, nearest first."""
        rows = self._database.execute(
            "SELECT rowid FROM raw WHERE vector MATCH ? AND k = ?", (vector.tobytes(), limit)
        )
        return [row[0] for row in rows]


class RawHnsw:
    """usearch: HNSW in half precision with its defaults (connectivity 16, 64 searched).

    Raises ``ImportError`` where it is not installed.
    """

    def __init__(self, vectors: Matrix) -> None:
        started = time.perf_counter()
        self._index: Any = native.graphs().Index(
            ndim=DIM, metric="ip", dtype="f16", expansion_search=64
        )
        self._index.add(np.arange(len(vectors)), vectors)
        self.seconds = time.perf_counter() - started

    def search(self, vector: Vector, limit: int) -> Ids:
        """Numbers of the nearest vectors, nearest first."""
        found: list[int] = self._index.search(vector, limit).keys.tolist()
        return found


def _size_mb(database: sqlite3.Connection, path: Path) -> float:
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path.stat().st_size / 2**20


def nearest(scores: npt.NDArray[np.float32], limit: int) -> list[int]:
    """Places of the highest scores, best first, ties by place."""
    limit = min(limit, scores.size)
    best = np.argpartition(-scores, limit - 1)[:limit]
    found: list[int] = best[np.lexsort((best, -scores[best]))].tolist()
    return found
