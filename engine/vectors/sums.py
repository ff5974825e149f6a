"""Running sums of an index's vectors by language, and the means taken from them.

``memory_vector_mean`` holds, for each language, the sum of its vectors and the mean in use, which
is taken anew whenever the language's count has doubled. On a server many write at the same time:
whoever finds the sums being changed leaves its part in ``memory_vector_summand``, and the next one
who does not takes it along. Nobody waits, so that no two can wait for one another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from engine.database import dialect_of, try_lock
from engine.protocols import DatabaseConnection
from engine.types import Vector
from engine.vectors.centres import FEWEST
from engine.vectors.segment import Doubles

Sums = dict[str, tuple[int, Doubles]]
"""Count and sum of vectors by language."""

TABLES: Final = {
    True: ("memory_vector_mean",),
    False: ("memory_vector_mean", "memory_vector_summand"),
}
"""Tables of the sums, by whether writers come one after another."""

CREATE_MEANS = """
    CREATE TABLE IF NOT EXISTS memory_vector_mean (
        index_id {integer} NOT NULL, language TEXT NOT NULL, count {integer} NOT NULL,
        total {blob} NOT NULL, used_count {integer} NOT NULL, used {blob} NOT NULL,
        UNIQUE (index_id, language))"""
CREATE_SUMMANDS = """
    CREATE TABLE IF NOT EXISTS memory_vector_summand (
        index_id BIGINT NOT NULL, language TEXT NOT NULL, count BIGINT NOT NULL,
        total BYTEA NOT NULL)"""
MEANS = "SELECT language, used_count, used FROM memory_vector_mean WHERE index_id = ?"
SUMS = """
    SELECT language, count, total, used_count, used FROM memory_vector_mean WHERE index_id = ?"""
KEEP_SUM = """
    INSERT INTO memory_vector_mean (index_id, language, count, total, used_count, used)
    VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (index_id, language) DO UPDATE SET count = excluded.count,
        total = excluded.total, used_count = excluded.used_count, used = excluded.used"""
ADD_SUMMAND = """
    INSERT INTO memory_vector_summand (index_id, language, count, total) VALUES (?, ?, ?, ?)"""
TAKE_SUMMANDS = """
    DELETE FROM memory_vector_summand WHERE index_id = ? RETURNING language, count, total"""


class LanguageSums:
    """The sums of one index."""

    def __init__(self, index_id: int, dim: int) -> None:
        self._index_id = index_id
        self._dim = dim

    def ensure(self, connection: DatabaseConnection) -> None:
        """Create the tables when absent."""
        words = dialect_of(connection)
        connection.execute(CREATE_MEANS.format(blob=words.blob, integer=words.integer))
        if not words.is_serial:
            connection.execute(CREATE_SUMMANDS)

    def means(self, connection: DatabaseConnection) -> dict[str, tuple[int, Vector]]:
        """The means in use by language, each with the count it was taken over."""
        found = connection.execute(MEANS, (self._index_id,)).fetchall()
        return {row[0]: (row[1], np.frombuffer(row[2], "<f4")) for row in found if row[1]}

    def count(
        self,
        connection: DatabaseConnection,
        come: Sequence[tuple[str, bytes]],
        gone: Sequence[tuple[str, bytes]],
    ) -> None:
        """Bring the sums up to what came and went, and the means where a count has doubled."""
        change: Sums = {}
        for sign, rows in ((1, come), (-1, gone)):
            for language, vector in rows:
                self._add(change, language, sign, sign * np.frombuffer(vector, "<f4"))
        change.pop("", None)
        if not change:
            return
        if not try_lock(connection, f"vectors-{self._index_id}"):
            connection.executemany(
                ADD_SUMMAND,
                [
                    (self._index_id, language, count, total.astype("<f8").tobytes())
                    for language, (count, total) in sorted(change.items())
                ],
            )
            return
        if not dialect_of(connection).is_serial:
            self._take_summands(connection, change)
        known = {row[0]: row[1:] for row in connection.execute(SUMS, (self._index_id,)).fetchall()}
        sums = [
            (self._index_id, language, *self._summed(known.get(language), count, total))
            for language, (count, total) in sorted(change.items())
        ]
        connection.executemany(KEEP_SUM, sums)

    def _take_summands(self, connection: DatabaseConnection, change: Sums) -> None:
        found = connection.execute(TAKE_SUMMANDS, (self._index_id,)).fetchall()
        for language, count, total in found:
            self._add(change, language, count, np.frombuffer(total, "<f8"))

    def _add(self, change: Sums, language: str, count: int, total: Vector | Doubles) -> None:
        so_far, values = change.get(language, (0, np.zeros(self._dim)))
        change[language] = (so_far + count, values + total.astype(np.float64))

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
