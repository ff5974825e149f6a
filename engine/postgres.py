"""A Postgres connection as index classes use one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from typing import Any, LiteralString

import psycopg
from psycopg.pq import TransactionStatus

from engine.database import POSTGRESQL, DatabaseFailed, Dialect
from engine.protocols import Cursor


class PostgresConnection:
    """Statements with ``?`` placeholders over a connection of psycopg; errors are
    ``DatabaseFailed``.

    ``raw`` is for what only psycopg has (COPY, server-side parameters); it shares the
    transaction.
    """

    dialect: Dialect = POSTGRESQL

    def __init__(self, raw: psycopg.Connection[Any]) -> None:
        self.raw = raw

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return not self.raw.autocommit or self._has_begun()

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> Cursor:
        """Run one statement. Values are put in by the driver, so that none needs a cast."""
        cursor = psycopg.ClientCursor(self.raw)
        with failing():
            cursor.execute(_translated(sql), tuple(parameters))
        return _Rows(cursor)

    def executemany(self, sql: str, parameters: Any, /) -> Cursor:
        """Run one statement for each row of values, in one go."""
        cursor = self.raw.cursor() if self._binds_itself() else psycopg.Cursor(self.raw)
        with failing():
            cursor.executemany(_translated(sql), parameters)
        return _Rows(cursor)

    def transaction(self) -> AbstractContextManager[object]:
        """A savepoint of the caller's transaction, or one of its own."""
        return self._transaction()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        # Only what the transaction itself says is a failure of the database here.
        try:
            if not self.raw.autocommit and not self._has_begun():
                # The caller's transaction, of which no statement has run yet: otherwise psycopg
                # would take this block for the whole of it, and commit.
                self.raw.execute("SELECT 1")
            with self.raw.transaction():
                yield
        except psycopg.Error as error:
            raise DatabaseFailed(type(error).__name__) from error

    def _has_begun(self) -> bool:
        return self.raw.info.transaction_status != TransactionStatus.IDLE

    def _binds_itself(self) -> bool:
        return not issubclass(self.raw.cursor_factory, psycopg.ClientCursor)


class _Rows:
    """The rows of a cursor, whose reading may fail as well."""

    def __init__(self, cursor: psycopg.Cursor[Any]) -> None:
        self._cursor = cursor

    def fetchall(self) -> list[Any]:
        with failing():
            return list(self._cursor.fetchall())

    def fetchone(self) -> Any:
        with failing():
            return self._cursor.fetchone()


@contextmanager
def failing() -> Iterator[None]:
    """Turn errors of psycopg into ``DatabaseFailed``."""
    try:
        yield
    except psycopg.Error as error:
        raise DatabaseFailed(type(error).__name__) from error


@lru_cache(maxsize=512)
def _translated(sql: str) -> LiteralString:
    """The statement with psycopg's placeholders; it is one of ours, never typed by anybody."""
    return sql.replace("%", "%%").replace("?", "%s")
