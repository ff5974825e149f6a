"""The change log on SQLite and on Postgres: nothing that commits late is missed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import psycopg
import pytest

from engine import scope_sql
from engine.columns import change_log
from engine.database import DatabaseFailed, atomic, dialect_of, in_transaction
from engine.postgres import PostgresConnection
from engine.testing import postgres_server
from engine.types import MemoryType, Scope

URL = str


@pytest.fixture(scope="module")
def server() -> Iterator[URL]:
    with postgres_server.running() as running:
        yield running.url()


@pytest.fixture
def pair(server: URL) -> Iterator[tuple[PostgresConnection, PostgresConnection]]:
    """Two connections to a database with an empty log."""
    with (
        psycopg.connect(server, autocommit=True) as one,
        psycopg.connect(server, autocommit=True) as other,
    ):
        first = PostgresConnection(one)
        first.execute(f"DROP TABLE IF EXISTS {scope_sql.CHANGES}")
        first.execute(scope_sql.SERVER_CHANGES)
        change_log.ensure(first)
        yield first, PostgresConnection(other)


def test_a_change_that_commits_late_is_still_told(
    pair: tuple[PostgresConnection, PostgresConnection],
) -> None:
    writer, reader = pair
    with writer.transaction():
        change_log.record(writer, [1])  # written first, committed last
        change_log.record(reader, [2])
        _low, seen = change_log.bounds(reader)
        assert change_log.changed(reader, seen, seen) == {2}
        assert change_log.changed(reader, seen, seen) == {2}, "told until it is settled"
    assert change_log.changed(reader, seen, seen) == {1, 2}
    _low, settled = change_log.bounds(reader)
    assert settled > seen
    assert change_log.changed(reader, settled, settled) == set()


def test_a_change_that_is_rolled_back_is_told_to_its_own_transaction_only(
    pair: tuple[PostgresConnection, PostgresConnection],
) -> None:
    writer, reader = pair
    _low, seen = change_log.bounds(reader)
    with pytest.raises(RuntimeError), writer.transaction():
        change_log.record(writer, [7])
        assert in_transaction(writer)
        assert change_log.changed(writer, seen, seen) == {7}
        assert change_log.changed(reader, seen, seen) == set()
        raise RuntimeError
    assert not in_transaction(writer)
    assert change_log.changed(writer, seen, seen) == set()


def test_the_first_position_tells_what_was_pruned(
    pair: tuple[PostgresConnection, PostgresConnection],
) -> None:
    log, _other = pair
    begin, seen = change_log.bounds(log)
    assert begin <= seen + 1, "a follower of now has missed nothing"
    for passage in range(1, 11):
        change_log.record(log, [passage])
    change_log.prune(log, keep=2)
    low, _high = change_log.bounds(log)
    assert low > seen + 1, "it has missed some now"
    assert change_log.changed(log, seen, seen) == {9, 10}


def test_entries_of_another_server_are_forgotten(
    pair: tuple[PostgresConnection, PostgresConnection],
) -> None:
    log, _other = pair
    log.execute(f"INSERT INTO {scope_sql.CHANGES} (passage_id, txid) VALUES (5, {2**60})")
    change_log.ensure(log)
    low, seen = change_log.bounds(log)
    assert change_log.changed(log, 0, seen) == {change_log.NOTHING}
    assert low <= seen


def test_sqlite_counts_entries() -> None:
    log = sqlite3.connect(":memory:", isolation_level=None)
    log.execute(scope_sql.CREATE_CHANGES)
    change_log.ensure(log)
    assert change_log.bounds(log) == (1, 0)
    change_log.record(log, [4, 5, 6])
    assert change_log.bounds(log) == (1, 3)
    assert change_log.changed(log, 1, 2) == {5}
    change_log.prune(log, keep=1)
    assert change_log.bounds(log) == (3, 3)
    log.close()


def test_statements_and_failures_of_a_server_look_like_those_of_sqlite(
    pair: tuple[PostgresConnection, PostgresConnection],
) -> None:
    database, _other = pair
    assert database.execute("SELECT '100%', ?::bigint", (3,)).fetchone() == ("100%", 3)
    with pytest.raises(DatabaseFailed, match="UndefinedTable"):
        database.execute("SELECT 1 FROM nowhere")
    with pytest.raises(DatabaseFailed, match="DivisionByZero"), atomic(database):
        database.execute("SELECT 1 / ?::int", (0,))
    assert database.execute("SELECT 1").fetchall() == [(1,)]
    listed = database.execute(f"SELECT 2 {dialect_of(database).among}", ("[1, 2]",)).fetchone()
    assert listed == (True,)


def test_a_block_in_a_transaction_that_has_only_begun_is_a_part_of_it(server: URL) -> None:
    with psycopg.connect(server) as raw:
        database = PostgresConnection(raw)
        assert in_transaction(database)
        with atomic(database):
            database.execute("CREATE TABLE begun (id INTEGER)")
        raw.rollback()
        assert database.execute("SELECT to_regclass('begun')").fetchone() == (None,)


def test_the_scope_is_the_same_condition_on_a_server(
    pair: tuple[PostgresConnection, PostgresConnection],
) -> None:
    database, _other = pair
    database.execute(f"DROP TABLE IF EXISTS {scope_sql.TABLE}")
    database.execute(scope_sql.SERVER_TABLE)
    row = f"INSERT INTO {scope_sql.TABLE} VALUES (?, ?, NULL, 's', ?, ?, false, false, ?, NULL)"
    database.executemany(
        row, [(1, 1, "factual", False, 5), (2, 1, "episodic", True, 5), (3, 2, "factual", True, 9)]
    )
    scope = Scope(
        now_ms=10,
        owners=frozenset({1}),
        include_shared=True,
        session="s",
        types=frozenset({MemoryType.FACTUAL}),
        retained_after_ms={MemoryType.FACTUAL: 5},
        excluded=frozenset({1}),
    )
    condition, params = scope_sql.where(scope, dialect=database.dialect)
    found = database.execute(f"SELECT p.id FROM {scope_sql.TABLE} p WHERE {condition}", params)
    assert found.fetchall() == [(3,)]
