"""Vectors in Postgres: writers at the same time, late commits, what another server left."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from engine.columns import change_log
from engine.errors import UnknownPassage
from engine.postgres import PostgresConnection
from engine.protocols import VectorStore
from engine.testing import postgres_server
from engine.testing.contracts_vectors import EVERYONE, X, Y, Z, fill, ids, passage, vector
from engine.testing.vector_world import EAGER, SIGNATURE, PostgresWorld, SettledIndex
from engine.vectors.in_process import InProcessIndex
from engine.vectors.state import Options

SPOIL = "UPDATE memory_vector SET vector = decode(repeat('00', 16), 'hex')"
"""Whoever reads the database after this finds nothing near; no log tells of it."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres_server.running() as running:
        yield running.url()


@pytest.fixture
def world(server: str) -> Iterator[PostgresWorld]:
    made = PostgresWorld(server)
    yield made
    made.close()


@pytest.fixture
def other(world: PostgresWorld) -> PostgresConnection:
    """A connection of another process."""
    return world.another()


def over(connection: PostgresConnection) -> InProcessIndex:
    """The index as the process of a connection has it."""
    return InProcessIndex(lambda: connection, signature=SIGNATURE, index_id=1)


def search(store: VectorStore) -> list[int]:
    return ids(store.search(vector(X), scope=EVERYONE, limit=100))


def test_a_vector_that_is_committed_late_is_found(
    world: PostgresWorld, other: PostgresConnection
) -> None:
    store = world.open()
    world.put(passage(1), passage(2), passage(3))
    with other.transaction():
        fill(over(other), {1: X})  # written first
        fill(store, {2: Y})
        assert search(store) == [2]
        fill(store, {3: Z})
        assert search(store) == [2, 3]
    assert search(store) == [1, 2, 3]
    assert search(world.open()) == [1, 2, 3]


def test_beside_a_long_transaction_what_is_new_is_read_once(
    world: PostgresWorld, other: PostgresConnection
) -> None:
    store = world.open()
    world.put(passage(1), passage(2), passage(3))
    with other.transaction():
        fill(over(other), {1: X})
        fill(store, {2: Y})
        assert search(store) == [2]
        world.connect().execute(SPOIL)
        fill(store, {3: Z})
        found = store.search(vector(Y), scope=EVERYONE, limit=2)
        assert [(c.passage_id, c.score) for c in found] == [(2, 1.0), (3, 0.0)]
    assert search(store)[0] == 1


def test_a_late_commit_is_found_by_an_index_that_was_loaded_while_it_was_open(
    world: PostgresWorld, other: PostgresConnection
) -> None:
    world.open()
    world.put(passage(1), passage(2))
    with other.transaction():
        fill(over(other), {1: X})
        store = world.open()
        fill(store, {2: Y})
        assert search(store) == [2]
    assert search(store) == [1, 2]


def test_pruning_beside_an_open_transaction_costs_one_reload_and_loses_nothing(
    world: PostgresWorld, other: PostgresConnection
) -> None:
    store = world.open()
    world.put(passage(1), passage(2), passage(3))
    fill(store, {1: Y})
    assert search(store) == [1]
    with other.transaction():
        fill(over(other), {2: X})
        fill(store, {3: Z})
        world.prune(keep=1)
        assert search(store) == [1, 3]
        world.connect().execute(SPOIL)
        found = store.search(vector(Y), scope=EVERYONE, limit=1)
        assert [candidate.score for candidate in found] == [1.0], "read anew for no reason"
    assert search(store)[0] == 2


def sums(world: PostgresWorld) -> dict[str, tuple[int, int]]:
    """Count and sum of the first value, which is one for each vector, by language."""
    found = world.connect().execute("SELECT language, count, total FROM memory_vector_mean")
    return {row[0]: (row[1], round(np.frombuffer(row[2])[0])) for row in found.fetchall()}


def test_writers_at_the_same_time_do_not_wait_and_all_are_counted(
    world: PostgresWorld, other: PostgresConnection
) -> None:
    store = world.open()
    world.put(*(passage(key) for key in range(1, 5)))
    with other.transaction():
        _named(over(other), 1)
        _named(store, 2)
        _named(store, 3)
        assert sums(world) == {}
    _named(store, 4)
    assert sums(world) == {"zh": (4, 4)}
    store.delete([1, 2])
    assert sums(world) == {"zh": (2, 2)}


def _named(store: InProcessIndex, key: int) -> None:
    store.upsert({key: vector(X)}, hashes={key: "h"}, languages={key: "zh"})


def test_no_vector_is_stored_for_a_passage_that_is_being_removed(
    world: PostgresWorld, other: PostgresConnection
) -> None:
    store = world.open()
    world.put(passage(1))
    with ThreadPoolExecutor(1) as pool:
        with other.transaction():
            other.execute("DELETE FROM memory_passage WHERE id = 1")
            late = pool.submit(fill, store, {1: X})
        with pytest.raises(UnknownPassage):
            late.result()
    assert store.count() == 0


def test_files_of_a_server_whose_numbers_were_higher_are_not_taken(
    server: str, tmp_path: Path
) -> None:
    world = PostgresWorld(server, SettledIndex, Options(tuning=EAGER, folder=tmp_path))
    store = world.open()
    world.put(passage(1), passage(2))
    fill(store, {1: X})
    assert search(store) == [1]
    world.connect().execute("UPDATE memory_vector_files SET position = ?", (2**50,))
    world.open()
    held = world.connect().execute("SELECT COUNT(*) FROM memory_vector_files").fetchone()
    world.close()
    assert held == (0,)


def test_two_processes_make_the_tables_at_the_same_time(world: PostgresWorld) -> None:
    with ThreadPoolExecutor(4) as pool:
        stores = list(pool.map(lambda _turn: world.open(), range(8)))
    low, high = change_log.bounds(world.connect())
    assert [store.count() for store in stores] == [0] * 8
    assert low <= high + 1
