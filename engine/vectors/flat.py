"""The in-process vector index: kept in the database, searched exactly in memory.

What is guaranteed. A search sees every change committed before it began, by this instance or any
other, because each search first follows the change log. Inside a transaction it also sees that
transaction's own changes; such changes are read again by every later search until one outside a
transaction has confirmed them, so a rollback leaves nothing behind. The connection's
``in_transaction`` tells which it is (sqlite3 has it; a connection without it counts as never in
one). The log may be pruned at any time: an index that missed a row loads itself anew.

Meant for SQLite, where ids of the log are committed in order. The log's newest row should be kept
when it is pruned, which saves a reload.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from threading import Lock

import numpy as np

from engine.errors import EngineError, Unavailable, UnknownPassage
from engine.protocols import Connect, DatabaseConnection
from engine.scope_sql import CHANGES, TABLE
from engine.types import Candidate, Health, Scope, Signature, Vector
from engine.vectors.columns import NEVER, NO_VAULT, Columns, Record, Snapshot
from engine.vectors.nearest import nearest
from engine.vectors.scope_rows import visible
from engine.vectors.similarity import unit

PAGE = 10_000
UNCONFIRMED = 5000
"""Changes read again after a load inside a transaction, since any of them may be rolled back."""

# Identifiers below are constants of this package; every value is bound.
CREATE = """
    CREATE TABLE IF NOT EXISTS memory_vector (
        index_id INTEGER NOT NULL, passage_id INTEGER NOT NULL, text_hash TEXT NOT NULL,
        vector BLOB NOT NULL, UNIQUE (index_id, passage_id))"""
STORE = """
    INSERT INTO memory_vector (index_id, passage_id, text_hash, vector) VALUES (?, ?, ?, ?)
    ON CONFLICT (index_id, passage_id)
    DO UPDATE SET text_hash = excluded.text_hash, vector = excluded.vector"""
# Only what a search can read: READ leaves the same rows out.
COUNT = "SELECT COUNT(*) FROM memory_vector WHERE index_id = ? AND length(vector) = ?"
AMONG = "IN (SELECT value FROM json_each(?))"
FORGET = f"DELETE FROM memory_vector WHERE index_id = ? AND passage_id {AMONG}"
FORGET_ALL = "DELETE FROM memory_vector WHERE index_id = ?"
LOG = f"INSERT INTO {CHANGES} (passage_id) VALUES (?)"
LOG_ALL = (
    f"INSERT INTO {CHANGES} (passage_id) SELECT passage_id FROM memory_vector WHERE index_id = ?"
)
LOG_SOME = f"{LOG_ALL} AND passage_id {AMONG}"
KNOWN = f"SELECT id FROM {TABLE} WHERE id {AMONG}"
BOUNDS = f"SELECT (SELECT MIN(id) FROM {CHANGES}), (SELECT MAX(id) FROM {CHANGES})"
CHANGED = f"SELECT DISTINCT passage_id FROM {CHANGES} WHERE id > ? AND id <= ?"
READ = f"""
    SELECT v.passage_id, p.owner_id, COALESCE(p.vault_id, {NO_VAULT}), p.session, p.type,
        p.is_shared, p.is_pinned, p.is_archived, p.retained_ms, COALESCE(p.expires_ms, {NEVER}),
        v.vector
    FROM memory_vector v JOIN {TABLE} p ON p.id = v.passage_id
    WHERE v.index_id = ? AND length(v.vector) = ?"""
READ_SOME = f"{READ} AND v.passage_id {AMONG}"
READ_PAGE = f"{READ} AND v.passage_id > ? ORDER BY v.passage_id LIMIT ?"


class FlatIndex:
    """``VectorStore`` named ``in-process``: exact cosine search over all vectors of one signature.

    ``index_id`` numbers the signature in the table. Thread-safe; loads itself on the first search.
    """

    def __init__(self, connect: Connect, *, signature: Signature, index_id: int) -> None:
        self._connect = connect
        self._signature = signature
        self._index_id = index_id
        self._lock = Lock()
        self._columns: Columns | None = None
        self._seen = 0
        self._unsettled: set[int] = set()

    @property
    def name(self) -> str:
        return "in-process"

    @property
    def signature(self) -> Signature:
        return self._signature

    def ensure(self) -> None:
        """Create the table when absent; all indexes share it."""
        self._connect().execute(CREATE)

    def upsert(self, vectors: Mapping[int, Vector], *, hashes: Mapping[int, str]) -> None:
        """Store vectors at unit length, all or none.

        Raises ``DimensionMismatch``, ``ZeroVector`` or ``UnknownPassage``.
        """
        rows = [
            (self._index_id, passage_id, hashes[passage_id], self._encode(vector))
            for passage_id, vector in sorted(vectors.items())
        ]
        if not rows:
            return
        connection = self._connect()
        ids = json.dumps(sorted(vectors))
        known = {row[0] for row in connection.execute(KNOWN, (ids,)).fetchall()}
        missing = sorted(set(vectors) - known)
        if missing:
            raise UnknownPassage(f"There is no passage {missing[0]}.")
        with _atomic(connection):
            connection.executemany(STORE, rows)
            connection.executemany(LOG, [(passage_id,) for passage_id in sorted(vectors)])

    def delete(self, ids: Collection[int]) -> None:
        """Forget vectors; unknown ids are fine."""
        if not ids:
            return
        connection = self._connect()
        chosen = (self._index_id, json.dumps(sorted(ids)))
        with _atomic(connection):
            connection.execute(LOG_SOME, chosen)
            connection.execute(FORGET, chosen)

    def drop(self) -> None:
        """Remove every vector of this signature."""
        connection = self._connect()
        with _atomic(connection):
            connection.execute(LOG_ALL, (self._index_id,))
            connection.execute(FORGET_ALL, (self._index_id,))

    def search(self, vector: Vector, *, scope: Scope, limit: int) -> list[Candidate]:
        """Nearest passages within the scope; the score is the cosine."""
        query = unit(vector, self._signature.dim)
        try:
            snapshot = self._snapshot()
        except sqlite3.Error as error:
            raise Unavailable(f"The index cannot be read ({type(error).__name__}).") from error
        return nearest(snapshot.table, visible(snapshot, scope), query, limit)

    def count(self) -> int:
        """Vectors stored."""
        (found,) = self._connect().execute(COUNT, self._key()).fetchone()
        return int(found)

    def health(self) -> Health:
        """Whether a real search works now. Never raises."""
        probe = np.zeros(self._signature.dim, np.float32)
        probe[:1] = 1.0
        begun = time.perf_counter()
        try:
            self.search(probe, scope=Scope(now_ms=0, owners=None), limit=1)
        except EngineError as error:
            return Health(False, str(error), {"code": error.code})
        except Exception as error:  # the driver's own errors; a health check reports them all
            return Health(False, f"The index cannot be read ({type(error).__name__}).")
        took_ms = round((time.perf_counter() - begun) * 1000, 2)
        columns = self._columns
        loaded = {"rows": len(columns), "bytes": columns.nbytes} if columns is not None else {}
        return Health(True, detail={"dim": self._signature.dim, "took_ms": took_ms, **loaded})

    def _encode(self, vector: Vector) -> bytes:
        return unit(vector, self._signature.dim).astype("<f4").tobytes()

    def _snapshot(self) -> Snapshot:
        connection = self._connect()
        with self._lock:
            return self._follow(connection).snapshot()

    def _follow(self, connection: DatabaseConnection) -> Columns:
        """Bring the rows in memory up to the log."""
        low, high = connection.execute(BOUNDS).fetchone()
        low, high = low or 1, high or 0
        is_open = bool(getattr(connection, "in_transaction", False))
        columns = self._columns
        if columns is None or high < self._seen or low > self._seen + 1:
            columns = self._columns = self._load(connection)
            self._seen = max(high - UNCONFIRMED, low - 1) if is_open else high
            self._unsettled = self._changed(connection, high)
            return columns
        if high == self._seen and not self._unsettled:
            return columns
        changed = self._changed(connection, high) | self._unsettled
        self._apply(connection, columns, changed)
        if is_open:
            self._unsettled = changed
        else:
            self._seen, self._unsettled = high, set()
        return columns

    def _changed(self, connection: DatabaseConnection, high: int) -> set[int]:
        found = connection.execute(CHANGED, (self._seen, high)).fetchall()
        return {int(row[0]) for row in found}

    def _apply(
        self, connection: DatabaseConnection, columns: Columns, changed: Collection[int]
    ) -> None:
        ids = json.dumps(sorted(changed))
        records: list[Record] = connection.execute(READ_SOME, (*self._key(), ids)).fetchall()
        columns.remove(changed)
        columns.put(records)

    def _load(self, connection: DatabaseConnection) -> Columns:
        columns = Columns(self._signature.dim, expected=self.count())
        after = -1
        while True:
            records: list[Record] = connection.execute(
                READ_PAGE, (*self._key(), after, PAGE)
            ).fetchall()
            columns.put(records)
            if len(records) < PAGE:
                return columns
            after = records[-1][0]

    def _key(self) -> tuple[int, int]:
        return self._index_id, self._signature.dim * 4


@contextmanager
def _atomic(connection: DatabaseConnection) -> Iterator[None]:
    """All or nothing, inside the caller's transaction or in one of its own."""
    connection.execute("SAVEPOINT vector_index")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK TO vector_index")
        connection.execute("RELEASE vector_index")
        raise
    connection.execute("RELEASE vector_index")
