"""Whether a database can have pgvector, and what is told when it cannot."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import psycopg
import pytest

from engine.errors import Unavailable
from engine.postgres import PostgresConnection
from engine.testing import postgres_server
from engine.testing.contracts_vectors import X, fill, passage
from engine.testing.pgvector_world import PgVectorWorld
from engine.testing.vector_world import SIGNATURE
from engine.vectors.pgvector import PgVectorStore
from engine.vectors.pgvector_options import PgVectorOptions, available


@pytest.fixture(scope="module")
def server() -> Iterator[postgres_server.PostgresServer]:
    with postgres_server.running() as running:
        yield running


@pytest.fixture
def connection(server: postgres_server.PostgresServer) -> Iterator[PostgresConnection]:
    with psycopg.connect(server.url(), autocommit=True) as raw:
        raw.execute("DROP EXTENSION IF EXISTS vector CASCADE")
        yield PostgresConnection(raw)


def test_the_extension_is_made_where_the_user_may(connection: PostgresConnection) -> None:
    first, second = available(connection), available(connection)
    assert first == second
    assert first.available
    assert str(first.detail["version"]).startswith("0.")


def test_sqlite_has_none() -> None:
    with sqlite3.connect(":memory:") as database:
        assert available(database).detail == {"code": "not_postgres"}
    database.close()


def test_a_server_without_the_extension_says_so(connection: PostgresConnection) -> None:
    connection.execute("SET extension_control_path = '/nowhere'")
    found = available(connection)
    assert (found.available, found.detail) == (False, {"code": "extension_missing"})


def test_a_user_without_the_right_is_told(
    server: postgres_server.PostgresServer, connection: PostgresConnection
) -> None:
    connection.execute("CREATE ROLE plain LOGIN")
    connection.execute("REVOKE CREATE ON DATABASE postgres FROM PUBLIC")
    url = server.url().replace(postgres_server.USER, "plain", 1)
    with psycopg.connect(url, autocommit=True) as raw:
        found = available(PostgresConnection(raw))
        store = PgVectorStore(lambda: PostgresConnection(raw), signature=SIGNATURE, index_id=1)
        with pytest.raises(Unavailable) as refused:
            store.ensure()
    assert (found.available, found.detail) == (False, {"code": "extension_forbidden"})
    assert refused.value.code == "extension_forbidden"


def test_health_gives_the_reason_when_a_table_is_gone(
    server: postgres_server.PostgresServer,
) -> None:
    world = PgVectorWorld(server.url(), PgVectorOptions())
    store = world.open()
    world.put(passage(1))
    fill(store, {1: X})
    world.connect().execute("DROP TABLE memory_pgvector_1_1")
    health = store.health()
    world.close()
    assert (health.available, health.detail) == (False, {"code": "unavailable"})
    assert health.reason == "The index cannot be read (UndefinedTable)."
