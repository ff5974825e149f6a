"""The in-process index: the contract, how it follows the change log, and random comparison."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from engine import scope_sql
from engine.database import FAILURES, dialect_of, in_transaction
from engine.protocols import VectorStore
from engine.testing import postgres_server
from engine.testing.contracts_vectors import (
    BOB,
    DIM,
    EVERYONE,
    OF_BOB,
    VectorScopeContract,
    VectorStoreContract,
    X,
    Y,
    Z,
    fill,
    ids,
    passage,
    vector,
)
from engine.testing.random_scopes import cosine, random_passage, random_scope
from engine.testing.vector_world import SERVER_WORLDS, WORLDS, InProcessWorld, made
from engine.types import Signature

ALL_WORLDS = (*WORLDS, *SERVER_WORLDS)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres_server.running() as running:
        yield running.url()


@pytest.fixture(params=ALL_WORLDS)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[InProcessWorld]:
    yield from opened(request, tmp_path)


def opened(request: pytest.FixtureRequest, path: Path) -> Iterator[InProcessWorld]:
    world = made(request.param, lambda: str(request.getfixturevalue("server")), path)
    yield world
    world.close()


class TestInProcessIndex(VectorStoreContract):
    @pytest.fixture(params=ALL_WORLDS)
    def world(self, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[InProcessWorld]:
        yield from opened(request, tmp_path)


class TestInProcessIndexScope(VectorScopeContract):
    @pytest.fixture(params=ALL_WORLDS)
    def world(self, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[InProcessWorld]:
        yield from opened(request, tmp_path)


FULL = {
    "sqlite": [
        """CREATE TRIGGER full BEFORE INSERT ON memory_vector WHEN NEW.passage_id = 2
        BEGIN SELECT RAISE(ABORT, 'disk full'); END"""
    ],
    "postgresql": ["ALTER TABLE memory_vector ADD CHECK (passage_id <> 2)"],
}
"""What makes the second passage fail."""


def search(store: VectorStore, values: tuple[float, ...] = X) -> list[int]:
    return ids(store.search(vector(values), scope=EVERYONE, limit=100))


def test_two_signatures_share_the_table_and_nothing_else(world: InProcessWorld) -> None:
    first = world.open()
    second = world.open(Signature("local", "b", "1", 2), index_id=2)
    world.put(passage(1), passage(2))
    fill(first, {1: X})
    fill(second, {2: (1.0, 0.0)})
    assert (first.count(), second.count()) == (1, 1)
    first.drop()
    assert ids(second.search(vector((1, 0)), scope=EVERYONE, limit=5)) == [2]


@pytest.mark.parametrize("keep", [0, 1])
def test_a_pruned_log_leads_to_a_reload(world: InProcessWorld, keep: int) -> None:
    store = world.open()
    world.put(passage(1), passage(2), passage(3))
    fill(store, {1: X})
    assert search(store) == [1]
    fill(world.open(), {2: X, 3: X})
    world.remove(1)
    world.prune(keep)
    assert search(store) == [2, 3]
    fill(world.open(), {2: Y})
    assert search(store) == [3, 2]


def test_a_rollback_before_the_first_load_leaves_no_ghost(world: InProcessWorld) -> None:
    store = world.open()
    world.put(passage(1))
    fill(store, {1: Y})
    world.begin()
    world.put(passage(2))
    fill(store, {2: X})
    assert search(store) == [2, 1]
    world.rollback()
    assert search(store) == [1]


def test_a_rollback_leaves_no_ghost_and_loses_no_later_change(world: InProcessWorld) -> None:
    store = world.open()
    world.put(passage(1), passage(2))
    fill(store, {1: Y})
    assert search(store) == [1]
    world.begin()
    fill(store, {1: X, 2: X})
    store.delete([1])
    assert search(store) == [2]
    world.rollback()
    # The log's ids of the transaction are given out again, to the same passage.
    fill(store, {1: Z})
    assert search(store, Z) == [1]


def test_a_transaction_rolled_back_is_unseen_by_the_next_one(world: InProcessWorld) -> None:
    store = world.open()
    world.put(passage(1), passage(2))
    fill(store, {1: Y})
    assert search(store) == [1]
    for _ in range(2):
        world.begin()
        assert search(store) == [1]
        fill(store, {2: X})
        assert search(store) == [2, 1]
        world.rollback()


def test_another_thread_never_sees_an_open_transaction(world: InProcessWorld) -> None:
    store = world.open()
    world.put(passage(1), passage(2))
    fill(store, {1: Y})
    with ThreadPoolExecutor(1) as other:
        world.begin()
        fill(store, {2: X})
        assert search(store) == [2, 1]
        assert other.submit(search, store).result() == [1]
        assert search(store) == [2, 1]
        world.commit()
        assert other.submit(search, store).result() == [2, 1]


def test_an_upsert_that_fails_half_way_stores_nothing(world: InProcessWorld) -> None:
    store = world.open()
    world.put(passage(1), passage(2))
    for statement in FULL[dialect_of(world.connect()).name]:
        world.connect().execute(statement)
    with pytest.raises(FAILURES):
        fill(store, {1: X, 2: Y})
    assert store.count() == 0
    assert not in_transaction(world.connect())


def test_many_changes_squeeze_out_the_dead_rows(world: InProcessWorld) -> None:
    store = world.open()
    keys = range(1, 601)
    world.put(*(passage(key, BOB if key % 2 else 9) for key in keys))
    for turn in range(6):
        fill(store, {key: (1.0, float(key), float(turn), 0.0) for key in keys})
        assert len(search(store)) == 100
    detail = store.health().detail
    assert detail["rows"] == 600
    assert len(store.search(vector(X), scope=OF_BOB, limit=1000)) == 300


def test_searches_and_changes_run_at_the_same_time(world: InProcessWorld) -> None:
    store = world.open()
    keys = range(1, 301)
    world.put(*(passage(key, BOB if key % 3 == 0 else 9) for key in keys))
    fill(store, {key: (1.0, float(key), 0.0, 0.0) for key in keys})

    def work(turn: int) -> bool:
        if turn % 4 == 0:
            fill(store, {key: (1.0, float(key), float(turn), 0.0) for key in keys})
        found = ids(store.search(vector(X), scope=OF_BOB, limit=1000))
        return len(found) == len(set(found)) == 100 and all(key % 3 == 0 for key in found)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(40)))


def test_health_gives_the_reason_when_the_table_is_gone(world: InProcessWorld) -> None:
    store = world.open()
    world.connect().execute("DROP TABLE memory_vector")
    health = store.health()
    assert not health.available
    assert health.reason.startswith("The index cannot be read (")


def test_random_scopes_agree_with_the_sql_condition(world: InProcessWorld) -> None:
    rng = np.random.default_rng(7)
    store = world.open()
    passages = [random_passage(key, rng) for key in range(1, 401)]
    vectors = {p.id: rng.standard_normal(DIM).astype(np.float32) for p in passages}
    world.put(*passages)
    store.upsert(vectors, hashes=dict.fromkeys(vectors, "h"))
    for _ in range(200):
        scope = random_scope(rng)
        query = rng.standard_normal(DIM).astype(np.float32)
        limit = int(rng.integers(1, 60))
        condition, parameters = scope_sql.where(scope, dialect=dialect_of(world.connect()))
        statement = f"SELECT p.id FROM {scope_sql.TABLE} p WHERE {condition}"
        allowed = [row[0] for row in world.connect().execute(statement, parameters).fetchall()]
        wanted = sorted(allowed, key=lambda key: (-cosine(vectors[key], query), key))[:limit]
        assert ids(store.search(query, scope=scope, limit=limit)) == wanted, json.dumps(parameters)
