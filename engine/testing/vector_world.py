"""Databases with passages, SQLite and Postgres, for tests of indexes that live in one."""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from pathlib import Path
from threading import Lock, local
from typing import Final

import psycopg

from engine import scope_sql
from engine.columns import change_log
from engine.database import atomic, dialect_of
from engine.postgres import PostgresConnection
from engine.protocols import DatabaseConnection
from engine.testing.contracts_vectors import DIM
from engine.types import Candidate, Passage, Scope, Signature, Vector
from engine.vectors.arrange import Tuning
from engine.vectors.in_process import InProcessIndex
from engine.vectors.state import Options

SIGNATURE: Final = Signature("local", "fake", "1", DIM)
EAGER: Final = Tuning(large=3, loose=0, loose_share=1_000_000, proposal=0)
"""Everything is arranged at once, and three rows get a graph."""
PUT = f"""
    INSERT INTO {scope_sql.TABLE} (id, owner_id, vault_id, session, type, is_shared, is_pinned,
        is_archived, retained_ms, expires_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET owner_id = excluded.owner_id, vault_id = excluded.vault_id,
        session = excluded.session, type = excluded.type, is_shared = excluded.is_shared,
        is_pinned = excluded.is_pinned, is_archived = excluded.is_archived,
        retained_ms = excluded.retained_ms, expires_ms = excluded.expires_ms"""  # noqa: S608
REMOVE = f"DELETE FROM {scope_sql.TABLE} WHERE id = ?"  # noqa: S608
FORGET_LOG = f"DELETE FROM {scope_sql.CHANGES}"  # noqa: S608
TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"


class SettledIndex(InProcessIndex):
    """An index whose searches wait until everything is arranged."""

    def search(
        self, vector: Vector, *, scope: Scope, limit: int, language: str = ""
    ) -> list[Candidate]:
        self.settle()
        return super().search(vector, scope=scope, limit=limit, language=language)


class RestartedIndex(SettledIndex):
    """An index of which every search is the first one of a new process, once files are there."""

    def search(
        self, vector: Vector, *, scope: Scope, limit: int, language: str = ""
    ) -> list[Candidate]:
        self.settle()
        self.forget()
        return super().search(vector, scope=scope, limit=limit, language=language)


class PassageWorld(ABC):
    """Passages in a database, with one connection for each thread."""

    begin_with = "BEGIN"

    @abstractmethod
    def connect(self) -> DatabaseConnection:
        """The connection of the calling thread."""

    @abstractmethod
    def close(self) -> None:
        """Close the connections of every thread."""

    def put(self, *passages: Passage) -> None:
        """Create or change passages."""
        rows = [
            (
                *(p.id, p.owner, p.vault, p.session, p.type or "", p.is_shared, p.is_pinned),
                *(p.is_archived, p.retained_ms, p.expires_ms),
            )
            for p in passages
        ]
        with atomic(self.connect()):
            self.connect().executemany(PUT, rows)
            change_log.record(self.connect(), [p.id for p in passages])

    def remove(self, *ids: int) -> None:
        """Remove passages."""
        with atomic(self.connect()):
            self.connect().executemany(REMOVE, [(key,) for key in ids])
            change_log.record(self.connect(), ids)

    def prune(self, keep: int = 0) -> None:
        """Forget the change log but for the newest entries; on a server one stays."""
        if keep or not dialect_of(self.connect()).is_serial:
            change_log.prune(self.connect(), max(keep, 1))
        else:
            self.connect().execute(FORGET_LOG)

    def begin(self) -> None:
        """Open a transaction of the calling thread's connection."""
        self.connect().execute(self.begin_with)

    def commit(self) -> None:
        """End it."""
        self.connect().execute("COMMIT")

    def rollback(self) -> None:
        """Undo it."""
        self.connect().execute("ROLLBACK")


class InProcessWorld(PassageWorld):
    """The same, and how the in-process index over them is kept."""

    def __init__(
        self, make: type[InProcessIndex] = InProcessIndex, options: Options | None = None
    ) -> None:
        self._make = make
        self.options = options or Options()

    def open(self, signature: Signature = SIGNATURE, index_id: int = 1) -> InProcessIndex:
        """A new instance, as another process would have it."""
        store = self._make(
            self.connect, signature=signature, index_id=index_id, options=self.options
        )
        store.ensure()
        return store


class SqliteWorld(InProcessWorld):
    """A database file in WAL mode."""

    begin_with = "BEGIN IMMEDIATE"

    def __init__(
        self,
        path: Path,
        make: type[InProcessIndex] = InProcessIndex,
        options: Options | None = None,
    ) -> None:
        super().__init__(make, options)
        self._path = path
        self._own = local()
        self._opened: list[sqlite3.Connection] = []
        connection = self.connect()
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(scope_sql.CREATE_TABLE)
        connection.execute(scope_sql.CREATE_CHANGES)

    def connect(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._own, "connection", None)
        if connection is None:
            connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
            connection.execute("PRAGMA synchronous = OFF")
            self._opened.append(connection)
            self._own.connection = connection
        return connection

    def close(self) -> None:
        for connection in self._opened:
            connection.close()


class PostgresPassages(PassageWorld):
    """A database of a server, empty at first.

    ``kept`` are tables that stay when it has been used before, as they are; then all others stay
    as well, without their rows: a test takes milliseconds.
    """

    def __init__(self, url: str, kept: Collection[str] = ()) -> None:
        self._url = url
        self._own = local()
        self._opened: list[PostgresConnection] = []
        self._lock = Lock()
        connection = self.connect()
        names = [row[0] for row in connection.execute(TABLES).fetchall()]
        statement = "DELETE FROM" if {*kept} & {*names} else "DROP TABLE"
        for name in sorted({*names} - {*kept}):
            connection.execute(f"{statement} {name}")
        connection.execute(scope_sql.SERVER_TABLE)
        connection.execute(scope_sql.SERVER_CHANGES)
        change_log.ensure(connection)

    def connect(self) -> PostgresConnection:
        connection: PostgresConnection | None = getattr(self._own, "connection", None)
        if connection is None:
            connection = self.another()
            self._own.connection = connection
        return connection

    def another(self) -> PostgresConnection:
        """One more connection, as another process would have it."""
        connection = PostgresConnection(psycopg.connect(self._url, autocommit=True))
        with self._lock:
            self._opened.append(connection)
        return connection

    def close(self) -> None:
        for connection in self._opened:
            connection.raw.close()


class PostgresWorld(PostgresPassages, InProcessWorld):
    """Such a database for the in-process index."""

    def __init__(
        self,
        url: str,
        make: type[InProcessIndex] = InProcessIndex,
        options: Options | None = None,
    ) -> None:
        InProcessWorld.__init__(self, make, options)
        PostgresPassages.__init__(self, url)


Build = Callable[[Path], SqliteWorld]

WORLDS: Final[dict[str, Build]] = {
    "as delivered": lambda path: SqliteWorld(path / "index.db"),
    "graphs in memory": lambda path: SqliteWorld(
        path / "index.db", SettledIndex, Options(tuning=EAGER)
    ),
    "graphs in files": lambda path: SqliteWorld(
        path / "index.db", SettledIndex, Options(tuning=EAGER, folder=path / "files")
    ),
    "restarted": lambda path: SqliteWorld(
        path / "index.db", RestartedIndex, Options(tuning=EAGER, folder=path / "files")
    ),
    "centred": lambda path: SqliteWorld(
        path / "index.db", SettledIndex, Options(tuning=EAGER, centred=True)
    ),
}
"""Every way the in-process index is kept over SQLite, by name."""

BuildOnServer = Callable[[str, Path], PostgresWorld]

SERVER_WORLDS: Final[dict[str, BuildOnServer]] = {
    "on postgres": lambda url, _path: PostgresWorld(url),
    "on postgres, graphs in files": lambda url, path: PostgresWorld(
        url, SettledIndex, Options(tuning=EAGER, folder=path / "files")
    ),
    "on postgres, centred": lambda url, _path: PostgresWorld(
        url, SettledIndex, Options(tuning=EAGER, centred=True)
    ),
}
"""The same over Postgres; every one empties the database."""


def made(name: str, server: Callable[[], str], path: Path) -> InProcessWorld:
    """A world by its name; ``server`` gives the URL of a database to empty."""
    if name in WORLDS:
        return WORLDS[name](path)
    return SERVER_WORLDS[name](server(), path)
