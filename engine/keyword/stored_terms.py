"""Reads scope columns and stored terms of passages out of the tables behind ``Fts5Index``."""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from engine.columns.table import SCOPE_FIELDS, SCOPE_WIDTH, Ints, decode
from engine.keyword.cutting import FieldWeights, segment_of
from engine.keyword.parts import PartKey
from engine.keyword.segment import Segment
from engine.protocols import DatabaseConnection
from engine.scope_sql import CHANGES, TABLE

PAGE = 5000

POSITION = f"""
    SELECT (SELECT MIN(id) FROM {CHANGES}), (SELECT MAX(id) FROM {CHANGES}),
        (SELECT analyzer FROM {{table}}_identity), (SELECT token FROM {{table}}_build)"""
ENTRY = f"SELECT passage_id FROM {CHANGES} WHERE id = ?"
MARK = f"INSERT INTO {CHANGES} (passage_id) VALUES (?) RETURNING id"
CHANGED = f"SELECT DISTINCT passage_id FROM {CHANGES} WHERE id > ? AND id <= ?"
IDS = f"SELECT p.id FROM {TABLE} p WHERE {{condition}}"
# CROSS JOIN keeps the planner to the ids that were asked for.
TERMS = f"""
    SELECT {SCOPE_FIELDS}, CAST(c.c0 AS BLOB), CAST(c.c1 AS BLOB), CAST(c.c2 AS BLOB)
    FROM json_each(?) wanted CROSS JOIN {TABLE} p ON p.id = wanted.value
    CROSS JOIN {{table}}_content c ON c.id = p.id
    WHERE {{condition}}"""
OWNER_SIZE = f"""
    SELECT COUNT(*) FROM (SELECT 1 FROM {TABLE} p WHERE {{condition}} LIMIT ?)"""
SPAN = f"SELECT MAX(id) - MIN(id) + 1 FROM {TABLE}"


@dataclass(frozen=True, slots=True)
class Position:
    """Where the change log stands, and which build of the index it is about."""

    low: int
    high: int
    build: str


@dataclass(frozen=True, slots=True)
class Mark:
    """An entry of the change log that only one history of the database has."""

    place: int
    entry: int


@dataclass(slots=True)
class Words:
    """Codes of the types and sessions of one part; they only grow."""

    types: dict[str, int]
    sessions: dict[str, int]


class StoredTerms:
    """What one part is made of, read over any connection."""

    def __init__(self, table: str, weights: FieldWeights) -> None:
        """``table`` is the FTS5 table, ``weights`` those of its fields."""
        self._table = table
        self.weights = weights

    def position(self, database: DatabaseConnection) -> Position:
        """Where the log stands now."""
        sql = POSITION.replace("{table}", self._table)
        low, high, analyzer, token = database.execute(sql).fetchone()
        return Position(low or 1, high or 0, f"{analyzer} {token}")

    def entry(self, database: DatabaseConnection, place: int) -> int | None:
        """Which passage an entry of the log is about; None when there is no such entry."""
        row = database.execute(ENTRY, (place,)).fetchone()
        return None if row is None else int(row[0])

    def mark(self, database: DatabaseConnection) -> Mark | None:
        """A new entry of the log, about no passage; None while another writer holds the database.

        A copy of the database that went another way has not got it.
        """
        entry = -1 - secrets.randbits(62)
        (patience,) = database.execute("PRAGMA busy_timeout").fetchone()
        database.execute("PRAGMA busy_timeout = 0")
        try:
            ((place,),) = database.execute(MARK, (entry,)).fetchall()
        except sqlite3.OperationalError:
            return None
        finally:
            database.execute(f"PRAGMA busy_timeout = {int(patience)}")
        return Mark(int(place), entry)

    def changed(self, database: DatabaseConnection, after: int, until: int) -> Ints:
        """Passages of the log's entries after one place, up to another; ascending."""
        rows = database.execute(CHANGED, (after, until)).fetchall()
        return np.sort(np.array([row[0] for row in rows], np.int64))

    def size(self, database: DatabaseConnection, key: PartKey, at_most: int) -> int:
        """Passages that loading a part would look at, counted up to a bound."""
        if key.kind != "owner":
            return int(database.execute(SPAN).fetchone()[0] or 0)
        condition, given = key.condition()
        sql = OWNER_SIZE.replace("{condition}", condition)
        return int(database.execute(sql, (*given, at_most)).fetchone()[0])

    def segments(
        self, database: DatabaseConnection, key: PartKey, words: Words
    ) -> Iterator[Segment]:
        """A whole part, in segments of at most ``PAGE`` passages, by id."""
        condition, given = key.condition()
        found = database.execute(IDS.replace("{condition}", condition), given).fetchall()
        ids = np.sort(np.array([row[0] for row in found], np.int64))
        for start in range(0, ids.size, PAGE):
            yield self.segment(database, key, ids[start : start + PAGE], words)

    def segment(
        self, database: DatabaseConnection, key: PartKey, ids: Ints, words: Words
    ) -> Segment:
        """Those of some passages that are in a part now.

        A passage without terms is one that the index lost: FTS5 does not find it either.
        """
        condition, given = key.condition()
        sql = TERMS.replace("{condition}", condition).replace("{table}", self._table)
        held = database.execute(sql, (json.dumps(ids.tolist()), *given)).fetchall()
        table = decode(held, words.types, words.sessions)
        return segment_of(table, [record[SCOPE_WIDTH:] for record in held], self.weights)
