"""What lies in ``memory_vector``, read for others than searches: to compare it and to copy it.

Every store keeps its vectors there, whatever it searches in.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import Final

from engine.database import dialect_of
from engine.protocols import Connect
from engine.scope_sql import TABLE

PAGE: Final = 2_000

StoredRow = tuple[int, str, str, bytes]
"""Passage id, text hash, language, and the unit vector as little-endian float32."""

HASHES: Final = """
    SELECT passage_id, text_hash FROM memory_vector
    WHERE index_id = ? AND length(vector) = ? AND passage_id {among}"""
ROWS: Final = f"""
    SELECT v.passage_id, v.text_hash, v.language, v.vector
    FROM memory_vector v JOIN {TABLE} p ON p.id = v.passage_id
    WHERE v.index_id = ? AND length(v.vector) = ? AND v.passage_id > ?
    ORDER BY v.passage_id LIMIT ?"""


class StoredVectors:
    """The vectors of one index that a search could read; ``index_id`` numbers its signature."""

    def __init__(self, connect: Connect, *, index_id: int, dim: int) -> None:
        self._connect = connect
        self._key = (index_id, dim * 4)

    def hashes(self, ids: Collection[int]) -> dict[int, str]:
        """Text hashes by passage; passages without a vector are absent."""
        if not ids:
            return {}
        connection = self._connect()
        statement = HASHES.format(among=dialect_of(connection).among)
        found = connection.execute(statement, (*self._key, json.dumps(sorted(ids)))).fetchall()
        return {int(row[0]): str(row[1]) for row in found}

    def rows(self) -> Iterator[StoredRow]:
        """Every vector with its passage, read page by page."""
        after = -1
        while True:
            page = self._connect().execute(ROWS, (*self._key, after, PAGE)).fetchall()
            for passage_id, text_hash, language, vector in page:
                yield int(passage_id), text_hash, language, bytes(vector)
            if len(page) < PAGE:
                return
            after = int(page[-1][0])
