"""Keyword search on plain Postgres."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from engine import scope_sql
from engine.columns import change_log
from engine.keyword.postgres import PostgresIndex
from engine.keyword.postings import PostingsIndex
from engine.postgres import PostgresConnection
from engine.protocols import KeywordIndex
from engine.testing import postgres_server
from engine.testing.contracts_keyword import KeywordIndexContract
from engine.text.tokenize import analyzer


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres_server.running() as running:
        yield running.url()


class OnPostgres(KeywordIndexContract):
    @pytest.fixture(autouse=True)
    def database(self, server: str) -> Iterator[None]:
        with psycopg.connect(server, autocommit=True) as raw:
            self.connection = PostgresConnection(raw)
            yield

    def durable(self) -> PostgresIndex:
        self.connection.execute(f"DROP TABLE IF EXISTS {scope_sql.TABLE}, {scope_sql.CHANGES}")
        self.connection.execute(scope_sql.SERVER_CHANGES)
        change_log.ensure(self.connection)
        index = PostgresIndex(lambda: self.connection, analyzer=analyzer("search"), owns_scope=True)
        index.clear()
        return index


class TestPostgresIndex(OnPostgres):
    def make_index(self) -> KeywordIndex:
        return self.durable()


class TestPostingsIndex(OnPostgres):
    def make_index(self) -> KeywordIndex:
        return PostingsIndex(self.durable())
