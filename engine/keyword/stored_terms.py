"""Reads what a part is made of: scope columns and stored terms, and how they changed."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from engine.columns import change_log
from engine.columns.table import SCOPE_WIDTH, Ints, decode
from engine.database import FAILURES, dialect_of, without_waiting
from engine.keyword.cutting import FieldWeights, segment_of
from engine.keyword.parts import PartKey
from engine.keyword.segment import Segment
from engine.protocols import DatabaseConnection
from engine.scope_sql import CHANGES, TABLE

PAGE = 5000

ENTRY = f"SELECT passage_id FROM {CHANGES} WHERE id = ?"
MARK = f"INSERT INTO {CHANGES} (passage_id) VALUES (?) RETURNING id"
IDS = f"SELECT p.id FROM {TABLE} p WHERE {{condition}}"
OWNER_SIZE = f"""
    SELECT COUNT(*) FROM (SELECT 1 FROM {TABLE} p WHERE {{condition}} LIMIT ?) found"""
SPAN = f"SELECT MAX(id) - MIN(id) + 1 FROM {TABLE}"


class TermSource(Protocol):
    """The tables that terms are read from; see ``DurableIndex``."""

    def build(self, database: DatabaseConnection) -> str: ...

    def stored_terms(
        self, database: DatabaseConnection, ids: Collection[int], where: tuple[str, Sequence[Any]]
    ) -> list[tuple[Any, ...]]: ...


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

    def __init__(self, source: TermSource, weights: FieldWeights) -> None:
        """``weights`` are those of title, body and metadata."""
        self._source = source
        self.weights = weights

    def position(self, database: DatabaseConnection) -> Position:
        """Where the log stands now."""
        low, high = change_log.bounds(database)
        return Position(low, high, self._source.build(database))

    def entry(self, database: DatabaseConnection, place: int) -> int | None:
        """Which passage an entry of the log is about; None when there is no such entry."""
        row = database.execute(ENTRY, (place,)).fetchone()
        return None if row is None else int(row[0])

    def mark(self, database: DatabaseConnection) -> Mark | None:
        """A new entry of the log, about no passage; None while another writer holds the database.

        A copy of the database that went another way has not got it.
        """
        entry = -1 - secrets.randbits(62)
        try:
            with without_waiting(database):
                ((place,),) = database.execute(MARK, (entry,)).fetchall()
        except FAILURES:
            return None
        return Mark(int(place), entry)

    def changed(self, database: DatabaseConnection, after: int, position: Position) -> Ints:
        """Passages that changed after a place of the log, up to a position; ascending.

        Where transactions commit in any order, later ones are told as well, and told again.
        """
        if dialect_of(database).is_serial and after == position.high:
            return np.zeros(0, np.int64)
        found = change_log.changed(database, after, position.high)
        return np.sort(np.fromiter(found, np.int64))

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

        A passage without terms is one that the index lost: it does not find it either.
        """
        where = key.condition()
        held = self._source.stored_terms(database, ids.tolist(), where)
        table = decode(held, words.types, words.sessions)
        return segment_of(table, [record[SCOPE_WIDTH:] for record in held], self.weights)
