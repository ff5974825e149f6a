"""What index classes must know of a database: its dialect, its transactions, its failures.

Their SQL has ``?`` placeholders everywhere. A connection of the standard library's ``sqlite3`` is
used as it is; ``engine.postgres.PostgresConnection`` stands for one of Postgres.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from typing import Final, Protocol, cast

from engine.protocols import DatabaseConnection


class DatabaseFailed(Exception):
    """A statement failed on a server, or the server is gone. The cause is the driver's error."""


FAILURES: Final = (sqlite3.Error, DatabaseFailed)
"""What ``except`` takes for an error of any database."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """Words that differ. ``among`` and ``outside`` follow a column and take one JSON list of
    integers.

    ``is_serial``: writers come one after another, so that numbers of the change log are in the
    order of the commits.
    """

    name: str
    blob: str
    integer: str
    among: str
    outside: str
    is_serial: bool


SQLITE: Final = Dialect(
    name="sqlite",
    blob="BLOB",
    integer="INTEGER",
    among="IN (SELECT value FROM json_each(?))",
    outside="NOT IN (SELECT value FROM json_each(?))",
    is_serial=True,
)
POSTGRESQL: Final = Dialect(
    name="postgresql",
    blob="BYTEA",
    integer="BIGINT",
    among="= ANY(ARRAY(SELECT jsonb_array_elements_text(CAST(? AS jsonb))::bigint))",
    # As a subquery it is hashed; an array would be walked for every row.
    outside="NOT IN (SELECT jsonb_array_elements_text(CAST(? AS jsonb))::bigint)",
    is_serial=False,
)


class ServerConnection(DatabaseConnection, Protocol):
    """A connection that is not of ``sqlite3``."""

    @property
    def dialect(self) -> Dialect: ...
    @property
    def in_transaction(self) -> bool: ...
    def transaction(self) -> AbstractContextManager[object]: ...


def dialect_of(connection: DatabaseConnection) -> Dialect:
    """The dialect a connection speaks."""
    return cast(Dialect, getattr(connection, "dialect", SQLITE))


def in_transaction(connection: DatabaseConnection) -> bool:
    """Whether a transaction is open, whose changes may still be rolled back."""
    return bool(getattr(connection, "in_transaction", False))


@contextmanager
def atomic(connection: DatabaseConnection) -> Iterator[None]:
    """All or nothing, inside the caller's transaction or in one of its own."""
    if dialect_of(connection) is not SQLITE:
        with cast(ServerConnection, connection).transaction():
            yield
        return
    connection.execute("SAVEPOINT engine")
    try:
        yield
    except BaseException:
        # The error may have ended the transaction, and the savepoint with it.
        with suppress(sqlite3.OperationalError):
            connection.execute("ROLLBACK TO engine")
            connection.execute("RELEASE engine")
        raise
    connection.execute("RELEASE engine")


@contextmanager
def without_waiting(connection: DatabaseConnection) -> Iterator[None]:
    """A write inside fails at once while another writer holds the database.

    On a server writers hold rows, not the database: nothing is changed there.
    """
    if dialect_of(connection) is not SQLITE:
        yield
        return
    (patience,) = connection.execute("PRAGMA busy_timeout").fetchone()
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        yield
    finally:
        connection.execute(f"PRAGMA busy_timeout = {int(patience)}")


def lock(connection: DatabaseConnection, name: str, *, shared: bool = False) -> None:
    """Hold a lock of this name until the transaction ends: what is read next stays true.

    A ``shared`` one is held by many at once, and by none while someone holds it alone. On SQLite
    the first write of a transaction does that; call this after it.
    """
    if dialect_of(connection) is not SQLITE:
        kind = "_shared" if shared else ""
        statement = f"SELECT pg_advisory_xact_lock{kind}(hashtextextended(?, 0))"
        connection.execute(statement, (name,))


def try_lock(connection: DatabaseConnection, name: str) -> bool:
    """Hold a lock of this name until the transaction ends, unless another has it."""
    if dialect_of(connection) is SQLITE:
        return True
    found = connection.execute("SELECT pg_try_advisory_xact_lock(hashtextextended(?, 0))", (name,))
    return bool(found.fetchone()[0])
