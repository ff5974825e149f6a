"""The vectors of one index in the database, with the means of their languages.

``memory_vector`` holds unit vectors as they came from the model. ``memory_vector_mean`` holds, for
each language, the running sum of its vectors and the mean in use, which is taken anew whenever the
language's count has doubled. ``memory_vector_files`` names the files on disk that belong to this
history of the database, and the place in the change log they were written at: files of another
history (a restored backup) are never taken for it.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Final

import numpy as np

from engine.columns.table import SCOPE_FIELDS
from engine.errors import UnknownPassage
from engine.protocols import Connect, DatabaseConnection
from engine.scope_sql import CHANGES, TABLE
from engine.types import Vector
from engine.vectors.centres import FEWEST
from engine.vectors.segment import Doubles

PAGE: Final = 10_000

Record = tuple[int, int, int, str, str, bool, bool, bool, int, int, bytes, str]
"""The fields of a ``ScopeRecord``, the vector, its language."""
Row = tuple[int, str, str, bytes]
"""Passage id, text hash, language, vector."""
Sums = dict[str, tuple[int, Doubles]]
"""Count and sum of vectors by language."""

# Identifiers below are constants of this package; every value is bound.
CREATE = """
    CREATE TABLE IF NOT EXISTS memory_vector (
        index_id INTEGER NOT NULL, passage_id INTEGER NOT NULL, text_hash TEXT NOT NULL,
        vector BLOB NOT NULL, language TEXT NOT NULL DEFAULT '', UNIQUE (index_id, passage_id))"""
CREATE_MEANS = """
    CREATE TABLE IF NOT EXISTS memory_vector_mean (
        index_id INTEGER NOT NULL, language TEXT NOT NULL, count INTEGER NOT NULL,
        total BLOB NOT NULL, used_count INTEGER NOT NULL, used BLOB NOT NULL,
        UNIQUE (index_id, language))"""
CREATE_FILES = """
    CREATE TABLE IF NOT EXISTS memory_vector_files (
        index_id INTEGER PRIMARY KEY, token TEXT NOT NULL, position INTEGER NOT NULL)"""
HAS_LANGUAGE = "SELECT name = 'language' FROM pragma_table_info('memory_vector') ORDER BY 1 DESC"
ADD_LANGUAGE = "ALTER TABLE memory_vector ADD COLUMN language TEXT NOT NULL DEFAULT ''"
STORE = """
    INSERT INTO memory_vector (index_id, passage_id, text_hash, vector, language)
    VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (index_id, passage_id) DO UPDATE SET
        text_hash = excluded.text_hash, vector = excluded.vector, language = excluded.language"""
# Only what a search can read: READ leaves the same rows out.
COUNT = "SELECT COUNT(*) FROM memory_vector WHERE index_id = ? AND length(vector) = ?"
AMONG = "IN (SELECT value FROM json_each(?))"
FORGET = f"DELETE FROM memory_vector WHERE index_id = ? AND passage_id {AMONG}"
FORGET_ALL = "DELETE FROM {} WHERE index_id = ?"
LOG = f"INSERT INTO {CHANGES} (passage_id) VALUES (?)"
LOG_ALL = (
    f"INSERT INTO {CHANGES} (passage_id) SELECT passage_id FROM memory_vector WHERE index_id = ?"
)
LOG_SOME = f"{LOG_ALL} AND passage_id {AMONG}"
KNOWN = f"SELECT id FROM {TABLE} WHERE id {AMONG}"
BOUNDS = f"SELECT (SELECT MIN(id) FROM {CHANGES}), (SELECT MAX(id) FROM {CHANGES})"
CHANGED = f"SELECT DISTINCT passage_id FROM {CHANGES} WHERE id > ? AND id <= ?"
READ = f"""
    SELECT {SCOPE_FIELDS}, v.vector, v.language
    FROM memory_vector v JOIN {TABLE} p ON p.id = v.passage_id
    WHERE v.index_id = ? AND length(v.vector) = ?"""
READ_SOME = f"{READ} AND v.passage_id {AMONG}"
READ_PAGE = f"{READ} AND v.passage_id > ? ORDER BY v.passage_id LIMIT ?"
UNNAMED = "SELECT passage_id FROM memory_vector WHERE index_id = ? AND language = '' LIMIT ?"
NAME = "UPDATE memory_vector SET language = ? WHERE index_id = ? AND passage_id = ?"
OLD = f"""
    SELECT language, vector FROM memory_vector
    WHERE index_id = ? AND length(vector) = ? AND language <> '' AND passage_id {AMONG}"""
MEANS = "SELECT language, used_count, used FROM memory_vector_mean WHERE index_id = ?"
SUMS = """
    SELECT language, count, total, used_count, used FROM memory_vector_mean WHERE index_id = ?"""
KEEP_SUM = "INSERT OR REPLACE INTO memory_vector_mean VALUES (?, ?, ?, ?, ?, ?)"
FILES = "SELECT token, position FROM memory_vector_files WHERE index_id = ?"
KEEP_FILES = "INSERT OR REPLACE INTO memory_vector_files VALUES (?, ?, ?)"


class VectorTable:
    """The rows of one index. Every write also goes to the change log, in one transaction."""

    def __init__(self, connect: Connect, *, index_id: int, dim: int) -> None:
        self._connect = connect
        self._index_id = index_id
        self._dim = dim

    def ensure(self) -> None:
        """Create the tables when absent, and bring an older one into shape."""
        connection = self._connect()
        shape = connection.execute(HAS_LANGUAGE).fetchone()
        for statement in (CREATE, CREATE_MEANS, CREATE_FILES):
            connection.execute(statement)
        if shape is None:
            # The vectors are gone, whoever dropped them: sums over them are worth nothing.
            connection.execute("DELETE FROM memory_vector_mean")
            connection.execute("DELETE FROM memory_vector_files")
        elif not shape[0]:
            connection.execute(ADD_LANGUAGE)

    def store(self, rows: Sequence[Row]) -> None:
        """Store vectors. Raises ``UnknownPassage`` and then stores none."""
        connection = self._connect()
        passages = sorted(row[0] for row in rows)
        ids = json.dumps(passages)
        known = {row[0] for row in connection.execute(KNOWN, (ids,)).fetchall()}
        missing = [passage_id for passage_id in passages if passage_id not in known]
        if missing:
            raise UnknownPassage(f"There is no passage {missing[0]}.")
        with _atomic(connection):
            # First of all a write: it takes the lock that what is read next is safe under.
            connection.executemany(LOG, [(passage_id,) for passage_id in passages])
            gone = self._held(connection, ids)
            connection.executemany(
                STORE,
                [
                    (self._index_id, passage_id, text_hash, vector, language)
                    for passage_id, text_hash, language, vector in rows
                ],
            )
            self._count(connection, [(row[2], row[3]) for row in rows], gone)

    def forget(self, passages: Collection[int]) -> None:
        """Remove vectors; unknown ids are fine."""
        connection = self._connect()
        chosen = (self._index_id, json.dumps(sorted(passages)))
        with _atomic(connection):
            connection.execute(LOG_SOME, chosen)
            gone = self._held(connection, chosen[1])
            connection.execute(FORGET, chosen)
            self._count(connection, [], gone)

    def forget_all(self) -> None:
        """Remove every vector, mean and file name of this index."""
        connection = self._connect()
        with _atomic(connection):
            connection.execute(LOG_ALL, (self._index_id,))
            for table in ("memory_vector", "memory_vector_mean", "memory_vector_files"):
                connection.execute(FORGET_ALL.format(table), (self._index_id,))

    def unnamed(self, limit: int) -> list[int]:
        """Passages whose vector has no language yet: stored before languages were."""
        found = self._connect().execute(UNNAMED, (self._index_id, limit)).fetchall()
        return [int(row[0]) for row in found]

    def name(self, languages: Mapping[int, str]) -> None:
        """Give vectors their language."""
        connection = self._connect()
        ids = json.dumps(sorted(languages))
        with _atomic(connection):
            connection.executemany(LOG, [(passage_id,) for passage_id in sorted(languages)])
            gone = self._held(connection, ids)
            connection.executemany(
                NAME,
                [(word, self._index_id, passage_id) for passage_id, word in languages.items()],
            )
            self._count(connection, self._held(connection, ids), gone)

    def count(self) -> int:
        """Vectors that a search can read."""
        (found,) = self._connect().execute(COUNT, self._key()).fetchone()
        return int(found)

    def bounds(self, connection: DatabaseConnection) -> tuple[int, int]:
        """First and last number of the change log."""
        low, high = connection.execute(BOUNDS).fetchone()
        return low or 1, high or 0

    def changed(self, connection: DatabaseConnection, after: int, until: int) -> set[int]:
        """Passages that changed in a part of the log."""
        found = connection.execute(CHANGED, (after, until)).fetchall()
        return {int(row[0]) for row in found}

    def read(
        self, connection: DatabaseConnection, passages: Collection[int]
    ) -> Iterator[list[Record]]:
        """Records of passages, page by page."""
        wanted = sorted(passages)
        for start in range(0, len(wanted), PAGE):
            ids = json.dumps(wanted[start : start + PAGE])
            yield connection.execute(READ_SOME, (*self._key(), ids)).fetchall()

    def read_all(self, connection: DatabaseConnection) -> Iterator[list[Record]]:
        """Every record, page by page."""
        after = -1
        while True:
            page: list[Record] = connection.execute(
                READ_PAGE, (*self._key(), after, PAGE)
            ).fetchall()
            yield page
            if len(page) < PAGE:
                return
            after = page[-1][0]

    def means(self, connection: DatabaseConnection) -> dict[str, tuple[int, Vector]]:
        """The means in use by language, each with the count it was taken over."""
        found = connection.execute(MEANS, (self._index_id,)).fetchall()
        return {row[0]: (row[1], np.frombuffer(row[2], "<f4")) for row in found if row[1]}

    def files(self, connection: DatabaseConnection) -> tuple[str, int] | None:
        """Token and log position of the files that belong to this index."""
        row = connection.execute(FILES, (self._index_id,)).fetchone()
        return (str(row[0]), int(row[1])) if row else None

    def keep_files(self, connection: DatabaseConnection, token: str, position: int) -> bool:
        """Name the files of this index; False when another writer holds the database just now.

        A search calls this, and must not wait for a long import to end.
        """
        (patience,) = connection.execute("PRAGMA busy_timeout").fetchone()
        connection.execute("PRAGMA busy_timeout = 0")
        try:
            connection.execute(KEEP_FILES, (self._index_id, token, position))
        except sqlite3.OperationalError:
            return False
        finally:
            connection.execute(f"PRAGMA busy_timeout = {int(patience)}")
        return True

    def _key(self) -> tuple[int, int]:
        return self._index_id, self._dim * 4

    def _held(self, connection: DatabaseConnection, ids: str) -> list[tuple[str, bytes]]:
        found: list[tuple[str, bytes]] = connection.execute(OLD, (*self._key(), ids)).fetchall()
        return found

    def _count(
        self,
        connection: DatabaseConnection,
        come: Sequence[tuple[str, bytes]],
        gone: Sequence[tuple[str, bytes]],
    ) -> None:
        """Bring the sums up to what came and went, and the means where a count has doubled."""
        change: Sums = {}
        for sign, rows in ((1, come), (-1, gone)):
            for language, vector in rows:
                count, total = change.get(language, (0, np.zeros(self._dim)))
                change[language] = (
                    count + sign,
                    total + sign * np.frombuffer(vector, "<f4").astype(np.float64),
                )
        change.pop("", None)
        if not change:
            return
        known = {row[0]: row[1:] for row in connection.execute(SUMS, (self._index_id,)).fetchall()}
        sums = [
            (self._index_id, language, *self._summed(known.get(language), count, total))
            for language, (count, total) in sorted(change.items())
        ]
        connection.executemany(KEEP_SUM, sums)

    def _summed(
        self, known: tuple[int, bytes, int, bytes] | None, more: int, change: Doubles
    ) -> tuple[int, bytes, int, bytes]:
        count, total, used_count, used = more, change, 0, b""
        if known is not None:
            count, used_count, used = count + known[0], known[2], known[3]
            total = total + np.frombuffer(known[1], "<f8")
        if count >= max(FEWEST, 2 * used_count):
            used_count, used = count, (total / count).astype("<f4").tobytes()
        return count, total.astype("<f8").tobytes(), used_count, used


@contextmanager
def _atomic(connection: DatabaseConnection) -> Iterator[None]:
    """All or nothing, inside the caller's transaction or in one of its own."""
    connection.execute("SAVEPOINT vector_index")
    try:
        yield
    except BaseException:
        # The error may have ended the transaction, and the savepoint with it.
        with suppress(sqlite3.OperationalError):
            connection.execute("ROLLBACK TO vector_index")
            connection.execute("RELEASE vector_index")
        raise
    connection.execute("RELEASE vector_index")
