"""Keyword search on Postgres: the contract, with and without pg_textsearch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from engine import scope_sql
from engine.columns import change_log
from engine.keyword.pg_textsearch import PgTextsearchIndex, is_available
from engine.keyword.postgres import PostgresIndex
from engine.keyword.postings import PostingsIndex
from engine.postgres import PostgresConnection
from engine.protocols import KeywordIndex
from engine.testing import postgres_server
from engine.testing.contracts_keyword import KeywordIndexContract
from engine.text.tokenize import analyzer


class Eager(PgTextsearchIndex):
    """Asks the extension whenever it may."""

    many_postings = 0
    least_share = 0.0


@pytest.fixture(scope="module")
def plain() -> Iterator[str]:
    with postgres_server.running() as running:
        yield running.url()


@pytest.fixture(scope="module")
def extended() -> Iterator[str]:
    with postgres_server.running("textsearch") as running:
        yield running.url()


def emptied(index: PostgresIndex) -> PostgresIndex:
    """The index in a database with nothing in it."""
    database = index.connect()
    database.execute(f"DROP TABLE IF EXISTS {scope_sql.TABLE}, {scope_sql.CHANGES}")
    database.execute(scope_sql.SERVER_CHANGES)
    change_log.ensure(database)
    index.clear()
    return index


class OnPostgres(KeywordIndexContract):
    server = "plain"
    kind: type[PostgresIndex] = PostgresIndex

    @pytest.fixture(autouse=True)
    def database(self, request: pytest.FixtureRequest) -> Iterator[None]:
        url: Any = request.getfixturevalue(self.server)
        with psycopg.connect(url, autocommit=True) as raw:
            connection = PostgresConnection(raw)
            assert is_available(lambda: connection) == (self.server == "extended")
            made = self.kind(lambda: connection, analyzer=analyzer("search"), owns_scope=True)
            self.durable = emptied(made)
            yield

    def make_index(self) -> KeywordIndex:
        return self.durable


class TestPostgresIndex(OnPostgres):
    """A table of postings."""


class TestPostingsIndex(OnPostgres):
    """Memory before it."""

    def make_index(self) -> KeywordIndex:
        return PostingsIndex(self.durable)


class TestPgTextsearchIndex(OnPostgres):
    """The extension for all it can do."""

    server = "extended"
    kind = Eager
