"""The durable vectors, as the mirror and its searches read them.

They live in ``memory_vector`` (``engine.vectors.table``); nothing is ever written to it here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from engine import scope_sql
from engine.columns import change_log
from engine.columns.table import NO_VAULT
from engine.database import dialect_of
from engine.protocols import Connect
from engine.qdrant.filters import NEVER
from engine.scope_sql import CHANGES, TABLE
from engine.types import Matrix, Scope, Vector

FIELDS: Final = f"""
    p.id, p.owner_id, COALESCE(p.vault_id, {NO_VAULT}), p.session, p.type, p.is_shared,
    p.is_pinned, p.is_archived, p.retained_ms, COALESCE(p.expires_ms, {NEVER}), v.language,
    v.text_hash, v.vector"""
READ: Final = f"""
    SELECT {FIELDS} FROM memory_vector v JOIN {TABLE} p ON p.id = v.passage_id
    WHERE v.index_id = ? AND length(v.vector) = ? AND {{sent}}"""
READ_SOME: Final = f"{READ} AND v.passage_id {{among}} ORDER BY v.passage_id"
READ_PAGE: Final = f"{READ} AND v.passage_id > ? ORDER BY v.passage_id LIMIT ?"
IDS: Final = f"""
    SELECT v.passage_id FROM memory_vector v JOIN {TABLE} p ON p.id = v.passage_id
    WHERE v.index_id = ? AND length(v.vector) = ? AND {{sent}}
        AND v.passage_id >= ? AND v.passage_id <= ?"""
COUNT: Final = f"""
    SELECT COUNT(*) FROM memory_vector v JOIN {TABLE} p ON p.id = v.passage_id
    WHERE v.index_id = ? AND length(v.vector) = ? AND {{sent}}"""
COUNT_FROM: Final = f"{COUNT} AND v.passage_id > ?"
HASHES: Final = f"""
    SELECT p.id, v.text_hash FROM {TABLE} p JOIN memory_vector v ON v.passage_id = p.id
    WHERE v.index_id = ? AND p.id {{among}} AND """
WITHIN: Final = f"""
    SELECT p.id, v.language, v.vector FROM {TABLE} p JOIN memory_vector v ON v.passage_id = p.id
    WHERE v.index_id = ? AND length(v.vector) = ? AND p.id {{among}} AND """
BEHIND: Final = f"""
    SELECT COUNT(*) FROM (SELECT 1 FROM {CHANGES} WHERE {{position}} > ? LIMIT ?) AS behind"""
SENT: Final = "(p.vault_id IS NULL OR p.vault_id {outside})"
MEANS: Final = "SELECT language, used FROM memory_vector_mean WHERE index_id = ? AND used_count > 0"


Kept = Callable[[], Collection[int]]
"""Tells the vaults whose vectors stay here."""


def nobody() -> Collection[int]:
    """No vault."""
    return ()


@dataclass(frozen=True, slots=True)
class Row:
    """One passage with its vector, as a point will carry it."""

    passage: int
    payload: Mapping[str, object]
    language: str
    vector: Vector


class VectorRows:
    """The rows of one vector index. Each call reads through the calling thread's connection.

    ``kept`` tells the vaults whose rows are not to leave this database: as if they had none.
    """

    def __init__(self, connect: Connect, *, index_id: int, dim: int, kept: Kept = nobody) -> None:
        self._connect = connect
        self._index_id = index_id
        self._dim = dim
        self._kept = kept

    def bounds(self) -> tuple[int, int]:
        """First and last position of the change log."""
        return change_log.bounds(self._connect())

    def changed(self, after: int, until: int) -> set[int]:
        """Passages that changed in a part of the log."""
        return change_log.changed(self._connect(), after, until) - {change_log.NOTHING}

    def behind(self, after: int, most: int) -> int:
        """How many entries of the log come after a position; ``most + 1`` means more than that."""
        connection = self._connect()
        position = "id" if dialect_of(connection).is_serial else "txid"
        sql = BEHIND.replace("{position}", position)
        (count,) = connection.execute(sql, (after, most + 1)).fetchone()
        return int(count)

    def read(self, passages: Collection[int]) -> list[Row]:
        """Rows of passages; those without one are absent."""
        sql, key = self._sent(READ_SOME)
        return [_row(found) for found in self._among(sql, key, passages)]

    def page(self, after: int, size: int) -> list[Row]:
        """The next rows by passage id."""
        sql, key = self._sent(READ_PAGE)
        found = self._connect().execute(sql, (*key, after, size)).fetchall()
        return [_row(one) for one in found]

    def ids(self, first: int, last: int) -> set[int]:
        """Passages of a span of ids that have a row."""
        sql, key = self._sent(IDS)
        found = self._connect().execute(sql, (*key, first, last)).fetchall()
        return {int(one[0]) for one in found}

    def count(self, after: int | None = None) -> int:
        """How many rows there are, or come after a passage."""
        sql, key = self._sent(COUNT if after is None else COUNT_FROM)
        given = key if after is None else (*key, after)
        return int(self._connect().execute(sql, given).fetchone()[0])

    def hashes(self, passages: Collection[int], scope: Scope) -> dict[int, str]:
        """Those passages that are within the scope now, with the hash of the text embedded."""
        found = self._within(HASHES, (self._index_id,), passages, scope)
        return {int(one[0]): str(one[1]) for one in found}

    def within(
        self, passages: Collection[int], scope: Scope
    ) -> tuple[list[int], list[str], Matrix]:
        """Passages of the scope among some, with their languages, and their vectors as rows."""
        found = self._within(WITHIN, self._key(), passages, scope)
        vectors = np.frombuffer(b"".join(bytes(one[2]) for one in found), "<f4")
        matrix: Matrix = vectors.reshape(len(found), self._dim).astype(np.float32, copy=False)
        return [int(one[0]) for one in found], [str(one[1]) for one in found], matrix

    def means(self) -> dict[str, Vector]:
        """The means of languages that the database knows now."""
        found = self._connect().execute(MEANS, (self._index_id,)).fetchall()
        return {str(name): np.frombuffer(bytes(mean), "<f4").copy() for name, mean in found}

    def _sent(self, sql: str) -> tuple[str, tuple[object, ...]]:
        """A statement over the rows that may leave, and its first values."""
        kept = sorted(self._kept())
        if not kept:
            return sql.replace("{sent}", "1 = 1"), self._key()
        condition = SENT.replace("{outside}", dialect_of(self._connect()).outside)
        return sql.replace("{sent}", condition), (*self._key(), json.dumps(kept))

    def _key(self) -> tuple[int, int]:
        return self._index_id, self._dim * 4

    def _among(
        self, sql: str, key: Sequence[object], passages: Collection[int]
    ) -> list[tuple[Any, ...]]:
        connection = self._connect()
        sql = sql.replace("{among}", dialect_of(connection).among)
        return connection.execute(sql, (*key, json.dumps(sorted(passages)))).fetchall()

    def _within(
        self, sql: str, key: Sequence[object], passages: Collection[int], scope: Scope
    ) -> list[tuple[Any, ...]]:
        connection = self._connect()
        dialect = dialect_of(connection)
        condition, params = scope_sql.where(scope, dialect=dialect)
        sql = sql.replace("{among}", dialect.among) + condition
        listed = json.dumps(sorted(passages))
        return connection.execute(sql, (*key, listed, *params)).fetchall()


def _row(found: Sequence[Any]) -> Row:
    (passage, owner, vault, session, kind, shared, pinned, archived, retained, expires) = found[:10]
    language, text_hash, vector = found[10:]
    payload = {
        "owner": str(owner),
        "vault": vault,
        "session": session,
        "type": kind,
        "is_shared": bool(shared),
        "is_pinned": bool(pinned),
        "is_archived": bool(archived),
        "retained_ms": retained,
        "expires_ms": min(expires, NEVER),
        "language": language,
        "text_hash": text_hash,
    }
    return Row(int(passage), payload, language, np.frombuffer(bytes(vector), "<f4"))
