"""A SQLite database with passages, for tests of indexes that live in one."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import local
from typing import Final

from engine import scope_sql
from engine.testing.contracts_vectors import DIM
from engine.types import Candidate, Passage, Scope, Signature, Vector
from engine.vectors.arrange import Tuning
from engine.vectors.in_process import InProcessIndex
from engine.vectors.state import Options

SIGNATURE: Final = Signature("local", "fake", "1", DIM)
EAGER: Final = Tuning(large=3, loose=0, loose_share=1_000_000, proposal=0)
"""Everything is arranged at once, and three rows get a graph."""
PUT = f"INSERT OR REPLACE INTO {scope_sql.TABLE} VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608
LOG = f"INSERT INTO {scope_sql.CHANGES} (passage_id) VALUES (?)"  # noqa: S608
REMOVE = f"DELETE FROM {scope_sql.TABLE} WHERE id = ?"  # noqa: S608
PRUNE = f"DELETE FROM {scope_sql.CHANGES} WHERE id <= ?"  # noqa: S608
LAST = f"SELECT MAX(id) FROM {scope_sql.CHANGES}"  # noqa: S608


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


class SqliteWorld:
    """A database file in WAL mode with one connection for each thread."""

    def __init__(
        self,
        path: Path,
        make: type[InProcessIndex] = InProcessIndex,
        options: Options | None = None,
    ) -> None:
        self._path = path
        self._make = make
        self.options = options or Options()
        self._own = local()
        self._opened: list[sqlite3.Connection] = []
        connection = self.connect()
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(scope_sql.CREATE_TABLE)
        connection.execute(scope_sql.CREATE_CHANGES)

    def connect(self) -> sqlite3.Connection:
        """The connection of the calling thread."""
        connection: sqlite3.Connection | None = getattr(self._own, "connection", None)
        if connection is None:
            connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
            connection.execute("PRAGMA synchronous = OFF")
            self._opened.append(connection)
            self._own.connection = connection
        return connection

    def open(self, signature: Signature = SIGNATURE, index_id: int = 1) -> InProcessIndex:
        """A new instance, as another process would have it."""
        store = self._make(
            self.connect, signature=signature, index_id=index_id, options=self.options
        )
        store.ensure()
        return store

    def put(self, *passages: Passage) -> None:
        """Create or change passages."""
        rows = [
            (
                *(p.id, p.owner, p.vault, p.session, p.type or "", p.is_shared, p.is_pinned),
                *(p.is_archived, p.retained_ms, p.expires_ms),
            )
            for p in passages
        ]
        self._write(PUT, rows)
        self._write(LOG, [(p.id,) for p in passages])

    def remove(self, *ids: int) -> None:
        """Remove passages."""
        self._write(REMOVE, [(key,) for key in ids])
        self._write(LOG, [(key,) for key in ids])

    def prune(self, keep: int = 0) -> None:
        """Forget the change log but for the newest entries."""
        (last,) = self.connect().execute(LAST).fetchone()
        self.connect().execute(PRUNE, (last - keep,))

    def close(self) -> None:
        """Close the connections of every thread."""
        for connection in self._opened:
            connection.close()

    def _write(self, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
        self.connect().execute("SAVEPOINT world")
        self.connect().executemany(statement, rows)
        self.connect().execute("RELEASE world")


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
"""Every way the in-process index is kept, by name."""
