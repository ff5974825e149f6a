"""Vectors in Postgres: scans of owners of several sizes, graphs, what they take to make.

    python -m benchmarks.postgres_vectors [--rows 100000]

Starts a Postgres with pgvector of its own and prints tables for docs/benchmarks.md. Questions are
asked one after another, through the store itself; recall is against the scan of the same rows.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from benchmarks.speed import vectors
from benchmarks.speed.text import BLOCK
from engine.scope_sql import CHANGES, TABLE
from engine.testing import postgres_server
from engine.testing.contracts_vectors import passage
from engine.testing.vector_world import PostgresPassages
from engine.types import Matrix, Scope, Signature
from engine.vectors.in_process import InProcessIndex
from engine.vectors.pgvector import PgVectorStore
from engine.vectors.pgvector_options import PgVectorOptions

SIGNATURE: Final = Signature("local", "stand-in", "1", vectors.DIM)
QUESTIONS: Final = 100
LIMIT: Final = 20
SETTINGS: Final = {"shared_buffers": "512MB"}
SHARES: Final = {3: 0.01, 2: 0.10, 1: 0.89}
"""Share of the rows by owner."""
WAYS: Final = {
    "scan": PgVectorOptions(least=10**9),
    "graph of halfvec": PgVectorOptions(least=1),
    "graph of bits": PgVectorOptions(least=1, quantization="binary"),
}
EVERY: Final = "every owner"
IN_PROCESS: Final = "in-process index over Postgres"
TABLE_SIZES: Final = """
    SELECT relname, pg_relation_size(oid) FROM pg_class
    WHERE relname LIKE 'memory_vector' OR relname LIKE 'memory_pgvector_1%'
    ORDER BY relname"""
INDEXES: Final = (
    f"CREATE INDEX ON {TABLE} (owner_id)",
    f"CREATE INDEX ON {TABLE} (owner_id, session) WHERE session <> ''",
    f"CREATE INDEX ON {CHANGES} (txid) WHERE txid > 0",
)


class World(PostgresPassages):
    """The rows, with the owners and the indexes that the product's table has."""

    def __init__(self, url: str, rows: int) -> None:
        super().__init__(url)
        for statement in INDEXES:
            self.connect().execute(statement)
        self.owners = np.random.default_rng(3).choice(
            list(SHARES), size=rows, p=list(SHARES.values())
        )
        self.matrix: Matrix = np.concatenate(
            [vectors.block(start, min(BLOCK, rows - start)) for start in range(0, rows, BLOCK)]
        )

    def store(self, options: PgVectorOptions) -> PgVectorStore:
        """The store, kept in one of the ways."""
        return PgVectorStore(self.connect, signature=SIGNATURE, index_id=1, options=options)

    def load(self) -> float:
        """Store every vector, a block at a time; seconds."""
        store = self.store(WAYS["scan"])
        store.ensure()
        for start in range(0, len(self.matrix), BLOCK):
            keys = range(start + 1, min(start + BLOCK, len(self.matrix)) + 1)
            self.put(*(passage(key, int(self.owners[key - 1])) for key in keys))
        begun = time.perf_counter()
        for start in range(0, len(self.matrix), BLOCK):
            keys = range(start + 1, min(start + BLOCK, len(self.matrix)) + 1)
            rows = {key: self.matrix[key - 1] for key in keys}
            store.upsert(rows, hashes=dict.fromkeys(keys, "h"))
        took = time.perf_counter() - begun
        self.connect().execute("VACUUM ANALYZE")
        return took

    def questions(self, owner: int | None) -> Matrix:
        """Questions about rows of an owner."""
        rows = (
            np.arange(len(self.matrix)) if owner is None else np.flatnonzero(self.owners == owner)
        )
        chosen = np.random.default_rng(8).choice(rows, size=QUESTIONS)
        return vectors.near(self.matrix[chosen], 8)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Vectors in Postgres.")
    parser.add_argument("--rows", type=int, default=100_000)
    rows = parser.parse_args().rows
    with postgres_server.running(settings=SETTINGS) as server:
        world = World(server.url(), rows)
        print(
            f"{rows:,} rows of {vectors.DIM} dimensions, stored at {rows / world.load():,.0f}/s\n"
        )
        _filled(world)
        found: dict[tuple[str, str], list[list[int]]] = {}
        sizes: dict[str, int] = {}
        print(
            "| searched | rows in reach | way | p50 / p95 ms | recall@20 |\n|---|---|---|---|---|"
        )
        for way, options in WAYS.items():
            store = world.store(options)
            begun = time.perf_counter()
            store.maintain()
            built = time.perf_counter() - begun
            for owner in (*SHARES, None):
                _measured(world, store, way, owner, found)
            print(f"| *made in {built:.1f} s* | | {way} | | |")
            print(f"| *in batches of 16, {_written(world, store):,.0f} rows/s* | | {way} | | |")
            sizes |= dict(world.connect().execute(TABLE_SIZES).fetchall())
        _in_process(world, found)
        _print_sizes(sizes)
        load = " / ".join(f"{value:.2f}" for value in os.getloadavg())
        print(f"\nLoad of the machine at the end: {load}")
        world.close()


def _measured(
    world: World,
    store: PgVectorStore | InProcessIndex,
    way: str,
    owner: int | None,
    found: dict[tuple[str, str], list[list[int]]],
) -> None:
    scope = Scope(now_ms=0, owners=None if owner is None else frozenset({owner}))
    name = EVERY if owner is None else f"owner {owner}"
    size = len(world.matrix) if owner is None else int((world.owners == owner).sum())
    took, hits = [], []
    for question in world.questions(owner):
        begun = time.perf_counter()
        answer = store.search(question, scope=scope, limit=LIMIT)
        took.append((time.perf_counter() - begun) * 1000)
        hits.append([candidate.passage_id for candidate in answer])
    found[way, name] = hits
    recall = _recall(hits, found["scan", name])
    middle, late = statistics.median(took), float(np.percentile(took, 95))
    print(f"| {name} | {size:,} | {way} | {middle:.1f} / {late:.1f} | {recall:.3f} |", flush=True)


def _recall(hits: Sequence[Iterable[int]], wanted: Sequence[Iterable[int]]) -> float:
    shares = [len({*a} & {*b}) / LIMIT for a, b in zip(hits, wanted, strict=True)]
    return statistics.mean(shares)


def _filled(world: World) -> None:
    """How long the table takes to be made of the durable rows."""
    begun = time.perf_counter()
    kept = world.store(WAYS["scan"]).rebuild()
    took = time.perf_counter() - begun
    world.connect().execute("VACUUM ANALYZE")
    print(f"Made anew from the durable rows at {kept.filled / took:,.0f}/s, without embedding.\n")


def _written(world: World, store: PgVectorStore) -> float:
    """Rows a second, written in batches of 16 beside a graph."""
    begun, count = time.perf_counter(), 800
    for start in range(1, count + 1, 16):
        keys = range(start, start + 16)
        rows = {key: world.matrix[key - 1] for key in keys}
        store.upsert(rows, hashes=dict.fromkeys(keys, "h"))
    return count / (time.perf_counter() - begun)


def _in_process(world: World, found: dict[tuple[str, str], list[list[int]]]) -> None:
    """The in-process index over the same durable rows, for comparison."""
    index = InProcessIndex(world.connect, signature=SIGNATURE, index_id=1)
    begun = time.perf_counter()
    index.search(world.matrix[0], scope=Scope(now_ms=0, owners=None), limit=1)
    loaded = time.perf_counter() - begun
    index.settle(600)
    for owner in (*SHARES, None):
        _measured(world, index, IN_PROCESS, owner, found)
    print(f"| *read in {loaded:.1f} s* | | {IN_PROCESS} | | |")


def _print_sizes(sizes: dict[str, int]) -> None:
    print("\n| table or index | MB |\n|---|---|")
    for name, size in sorted(sizes.items()):
        print(f"| `{name}` | {size / 2**20:.0f} |")


if __name__ == "__main__":
    main()
