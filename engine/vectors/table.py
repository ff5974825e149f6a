"""The vectors of one index in the database, whichever that is.

``memory_vector`` holds unit vectors as they came from the model; ``engine.vectors.sums`` keeps the
means of their languages beside them. ``memory_vector_files`` names the files on disk that belong to
this history of the database, and the place in the change log they were written at: files of another
history (a restored backup) are never taken for it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from engine.columns import change_log
from engine.columns.table import SCOPE_FIELDS
from engine.database import FAILURES, SQLITE, atomic, dialect_of, lock, without_waiting
from engine.errors import UnknownPassage
from engine.protocols import Connect, DatabaseConnection
from engine.scope_sql import CHANGES, TABLE
from engine.types import Vector
from engine.vectors.sums import TABLES as SUM_TABLES
from engine.vectors.sums import LanguageSums

PAGE: Final = 10_000

Record = tuple[int, int, int, str, str, bool, bool, bool, int, int, bytes, str]
"""The fields of a ``ScopeRecord``, the vector, its language."""
Row = tuple[int, str, str, bytes]
"""Passage id, text hash, language, vector."""

# Identifiers below are constants of this package; every value is bound.
CREATE = """
    CREATE TABLE IF NOT EXISTS memory_vector (
        index_id {integer} NOT NULL, passage_id {integer} NOT NULL, text_hash TEXT NOT NULL,
        vector {blob} NOT NULL, language TEXT NOT NULL DEFAULT '', UNIQUE (index_id, passage_id))"""
CREATE_FILES = """
    CREATE TABLE IF NOT EXISTS memory_vector_files (
        index_id {integer} PRIMARY KEY, token TEXT NOT NULL, position {integer} NOT NULL)"""
# Values of a vector do not compress; trying takes longer than writing them.
STORE_PLAINLY = "ALTER TABLE memory_vector ALTER COLUMN vector SET STORAGE EXTERNAL"
HAS_LANGUAGE = "SELECT name = 'language' FROM pragma_table_info('memory_vector') ORDER BY 1 DESC"
ADD_LANGUAGE = "ALTER TABLE memory_vector ADD COLUMN language TEXT NOT NULL DEFAULT ''"
ARE_THERE = """
    SELECT to_regclass('memory_vector') IS NOT NULL, to_regclass('memory_vector_mean') IS NOT NULL,
        to_regclass('memory_vector_files') IS NOT NULL,
        to_regclass('memory_vector_summand') IS NOT NULL"""
FORGET_FUTURE = """
    DELETE FROM memory_vector_files
    WHERE position >= pg_snapshot_xmax(pg_current_snapshot())::text::bigint"""
STORE = """
    INSERT INTO memory_vector (index_id, passage_id, text_hash, vector, language)
    VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (index_id, passage_id) DO UPDATE SET
        text_hash = excluded.text_hash, vector = excluded.vector, language = excluded.language"""
# Only what a search can read: READ leaves the same rows out.
COUNT = "SELECT COUNT(*) FROM memory_vector WHERE index_id = ? AND length(vector) = ?"
FORGET = "DELETE FROM memory_vector WHERE index_id = ? AND passage_id {among}"
FORGET_ALL = "DELETE FROM {} WHERE index_id = ?"
LOG_ALL = (
    f"INSERT INTO {CHANGES} (passage_id) SELECT passage_id FROM memory_vector WHERE index_id = ?"
)
LOG_SOME = f"{LOG_ALL} AND passage_id {{among}}"
KNOWN = f"SELECT id FROM {TABLE} WHERE id {{among}}"
# Nobody removes the passage before its vector is there to be removed with it.
KEPT = f"{KNOWN} ORDER BY id FOR KEY SHARE"
READ = f"""
    SELECT {SCOPE_FIELDS}, v.vector, v.language
    FROM memory_vector v JOIN {TABLE} p ON p.id = v.passage_id
    WHERE v.index_id = ? AND length(v.vector) = ?"""
READ_SOME = f"{READ} AND v.passage_id {{among}}"
READ_PAGE = f"{READ} AND v.passage_id > ? ORDER BY v.passage_id LIMIT ?"
UNNAMED = "SELECT passage_id FROM memory_vector WHERE index_id = ? AND language = '' LIMIT ?"
NAME = "UPDATE memory_vector SET language = ? WHERE index_id = ? AND passage_id = ?"
OLD = """
    SELECT language, vector FROM memory_vector
    WHERE index_id = ? AND length(vector) = ? AND language <> '' AND passage_id {among}"""
FILES = "SELECT token, position FROM memory_vector_files WHERE index_id = ?"
KEEP_FILES = """
    INSERT INTO memory_vector_files (index_id, token, position) VALUES (?, ?, ?)
    ON CONFLICT (index_id) DO UPDATE SET token = excluded.token, position = excluded.position"""


class VectorTable:
    """The rows of one index. Every write also goes to the change log, in one transaction."""

    def __init__(self, connect: Connect, *, index_id: int, dim: int) -> None:
        self._connect = connect
        self._index_id = index_id
        self._dim = dim
        self._sums = LanguageSums(index_id, dim)

    def ensure(self) -> None:
        """Create the tables when absent, and bring an older one into shape."""
        connection = self._connect()
        if dialect_of(connection) is SQLITE:
            self._ensure_file(connection)
        else:
            self._ensure_server(connection)

    def _ensure_file(self, connection: DatabaseConnection) -> None:
        shape = connection.execute(HAS_LANGUAGE).fetchone()
        self._create(connection)
        if shape is None:
            self._forget_derived(connection)
        elif not shape[0]:
            connection.execute(ADD_LANGUAGE)

    def _ensure_server(self, connection: DatabaseConnection) -> None:
        if not all(connection.execute(ARE_THERE).fetchone()):
            with atomic(connection):
                lock(connection, "vectors")
                had_vectors = connection.execute(ARE_THERE).fetchone()[0]
                self._create(connection)
                connection.execute(STORE_PLAINLY)
                if not had_vectors:
                    self._forget_derived(connection)
        # What a restored copy brings from a server whose numbers were higher.
        connection.execute(FORGET_FUTURE)

    def _create(self, connection: DatabaseConnection) -> None:
        for statement in (CREATE, CREATE_FILES):
            words = dialect_of(connection)
            connection.execute(statement.format(blob=words.blob, integer=words.integer))
        self._sums.ensure(connection)

    def _forget_derived(self, connection: DatabaseConnection) -> None:
        """The vectors are gone, whoever dropped them: sums over them are worth nothing."""
        for table in self._beside(connection):
            connection.execute(f"DELETE FROM {table}")

    def store(self, rows: Sequence[Row]) -> None:
        """Store vectors. Raises ``UnknownPassage`` and then stores none."""
        connection = self._connect()
        passages = sorted(row[0] for row in rows)
        ids = json.dumps(passages)
        with atomic(connection):
            # First of all a write: it takes the lock that what is read next is safe under.
            change_log.record(connection, passages)
            self._check(connection, passages, ids)
            gone = self._held(connection, ids)
            connection.executemany(
                STORE,
                [
                    (self._index_id, passage_id, text_hash, vector, language)
                    for passage_id, text_hash, language, vector in rows
                ],
            )
            self._sums.count(connection, [(row[2], row[3]) for row in rows], gone)

    def forget(self, passages: Collection[int]) -> None:
        """Remove vectors; unknown ids are fine."""
        connection = self._connect()
        chosen = (self._index_id, json.dumps(sorted(passages)))
        with atomic(connection):
            connection.execute(_among(connection, LOG_SOME), chosen)
            gone = self._held(connection, chosen[1])
            connection.execute(_among(connection, FORGET), chosen)
            self._sums.count(connection, [], gone)

    def forget_all(self) -> None:
        """Remove every vector, mean and file name of this index."""
        connection = self._connect()
        with atomic(connection):
            connection.execute(LOG_ALL, (self._index_id,))
            for table in ("memory_vector", *self._beside(connection)):
                connection.execute(FORGET_ALL.format(table), (self._index_id,))

    def unnamed(self, limit: int) -> list[int]:
        """Passages whose vector has no language yet: stored before languages were."""
        found = self._connect().execute(UNNAMED, (self._index_id, limit)).fetchall()
        return [int(row[0]) for row in found]

    def name(self, languages: Mapping[int, str]) -> None:
        """Give vectors their language."""
        connection = self._connect()
        ids = json.dumps(sorted(languages))
        with atomic(connection):
            change_log.record(connection, sorted(languages))
            gone = self._held(connection, ids)
            connection.executemany(
                NAME,
                [(word, self._index_id, passage_id) for passage_id, word in languages.items()],
            )
            self._sums.count(connection, self._held(connection, ids), gone)

    def count(self) -> int:
        """Vectors that a search can read."""
        (found,) = self._connect().execute(COUNT, self._key()).fetchone()
        return int(found)

    def read(
        self, connection: DatabaseConnection, passages: Collection[int]
    ) -> Iterator[list[Record]]:
        """Records of passages, page by page."""
        wanted = sorted(passages)
        statement = _among(connection, READ_SOME)
        for start in range(0, len(wanted), PAGE):
            ids = json.dumps(wanted[start : start + PAGE])
            yield connection.execute(statement, (*self._key(), ids)).fetchall()

    def read_all(self, connection: DatabaseConnection, after: int = -1) -> Iterator[list[Record]]:
        """Every record behind a passage, page by page."""
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
        return self._sums.means(connection)

    def files(self, connection: DatabaseConnection) -> tuple[str, int] | None:
        """Token and log position of the files that belong to this index."""
        row = connection.execute(FILES, (self._index_id,)).fetchone()
        return (str(row[0]), int(row[1])) if row else None

    def keep_files(self, connection: DatabaseConnection, token: str, position: int) -> bool:
        """Name the files of this index; False when another writer holds the database just now.

        A search calls this, and must not wait for a long import to end.
        """
        with without_waiting(connection):
            try:
                connection.execute(KEEP_FILES, (self._index_id, token, position))
            except FAILURES:
                return False
        return True

    def _key(self) -> tuple[int, int]:
        return self._index_id, self._dim * 4

    def _check(self, connection: DatabaseConnection, passages: Sequence[int], ids: str) -> None:
        """Raise for a passage that is not there. On a server, hold those that are."""
        statement = KNOWN if dialect_of(connection) is SQLITE else KEPT
        found = connection.execute(_among(connection, statement), (ids,)).fetchall()
        known = {row[0] for row in found}
        missing = [passage_id for passage_id in passages if passage_id not in known]
        if missing:
            raise UnknownPassage(f"There is no passage {missing[0]}.")

    def _held(self, connection: DatabaseConnection, ids: str) -> list[tuple[str, bytes]]:
        found: list[tuple[str, bytes]] = connection.execute(
            _among(connection, OLD), (*self._key(), ids)
        ).fetchall()
        return found

    def _beside(self, connection: DatabaseConnection) -> tuple[str, ...]:
        return ("memory_vector_files", *SUM_TABLES[dialect_of(connection).is_serial])


def _among(connection: DatabaseConnection, statement: str) -> str:
    return statement.format(among=dialect_of(connection).among)
