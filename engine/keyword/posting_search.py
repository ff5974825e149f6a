"""The best passages by BM25 in two statements over a table of postings.

The first counts: passages and terms of the parts searched, and passages that hold each term. The
second adds up what each term gives a passage, and reads scope columns of the best ones in their
order until there are enough.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from engine import scope_sql
from engine.database import POSTGRESQL
from engine.keyword.bm25 import LEAST_IDF, Formula
from engine.keyword.cutting import FieldWeights
from engine.keyword.durable import Found
from engine.keyword.posting_rows import (
    EVERY,
    MAX_WEIGHT,
    TermRow,
    lowered,
    parts_within,
    short,
)
from engine.keyword.term_form import is_prefix
from engine.protocols import DatabaseConnection
from engine.types import Scope

# OFFSET 0 keeps the planner to one look into the index for each term.
COUNTS: Final = """
    SELECT w.place, c.passages, c.terms FROM unnest(?::text[]) WITH ORDINALITY AS w (term, place)
    CROSS JOIN LATERAL (
        SELECT count(*) AS passages, coalesce(sum(p.length), 0) AS terms FROM {postings} p
        WHERE p.term = w.term COLLATE "C" AND {within} OFFSET 0) c
    ORDER BY w.place"""
COUNT_ANY: Final = """
    SELECT count(DISTINCT p.passage_id) FROM {postings} p
    WHERE p.term = ANY(?::text[]) AND {within}"""
# From each term to the next: a range would be read with the passages of every owner.
BEGINNING: Final = """
    WITH RECURSIVE found (term) AS (
        (SELECT p.term FROM {postings} p WHERE p.term >= ? ORDER BY p.term LIMIT 1)
        UNION ALL
        SELECT (SELECT p.term FROM {postings} p WHERE p.term > found.term ORDER BY p.term LIMIT 1)
        FROM found WHERE found.term < ? COLLATE "C")
    SELECT term FROM found WHERE term < ? COLLATE "C" """
HELD: Final = """
    SELECT w.place, w.idf, p.passage_id, p.length, p.weight
    FROM unnest(?::bigint[], ?::text[], ?::float8[]) AS w (place, term, idf)
    CROSS JOIN LATERAL (
        SELECT p.passage_id, p.length::float8, p.weight::float8 FROM {postings} p
        WHERE p.term = w.term COLLATE "C" AND {within} OFFSET 0) p"""
# What begins with a term counts as that term, however many different ones there are.
HELD_ONCE: Final = f"""
    SELECT place, idf, passage_id, max(length) AS length,
        least(sum(weight), {MAX_WEIGHT}) AS weight
    FROM ({HELD}) h GROUP BY place, idf, passage_id"""
BEST: Final = f"""
    WITH scored AS (
        SELECT passage_id, sum(idf * weight / (weight + ?::float8 + ?::float8 * length)) AS score
        FROM ({{held}}) h GROUP BY passage_id {{having}})
    SELECT s.passage_id, s.score
    FROM (SELECT * FROM scored ORDER BY score DESC, passage_id) s
    JOIN {scope_sql.TABLE} p ON p.id = s.passage_id
    WHERE {{condition}} ORDER BY s.score DESC, s.passage_id LIMIT ? OFFSET ?"""


REMEMBERED_FROM: Final = 10_000
REMEMBERED_S: Final = 60.0
"""So long a count above ``REMEMBERED_FROM`` is taken for what it was: it moves by little, and to
count it again is most of a search."""
MAX_REMEMBERED: Final = 20_000


@dataclass(frozen=True, slots=True)
class Page:
    """Which of the passages, best first."""

    limit: int
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Term:
    """A term of the query: the terms of the index that count as it, and what it is worth."""

    held_as: tuple[str, ...]
    held_by: int
    idf: float


@dataclass(frozen=True, slots=True)
class Within:
    """SQL for the postings of the parts of a scope (table ``p``)."""

    condition: str
    given: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Counted:
    """What a scope's parts hold of a query. ``average`` is the length of a passage."""

    within: Within
    passages: int
    average: float
    terms: tuple[Term, ...]
    misses: int
    """Terms of the query that no passage holds."""

    @property
    def postings(self) -> int:
        """How many a search reads."""
        return sum(term.held_by for term in self.terms)

    @property
    def is_plain(self) -> bool:
        """Whether each term of the query is one of the index."""
        return all(len(term.held_as) == 1 for term in self.terms)


class PostingSearch:
    """Searches one table of postings with one formula. Thread-safe."""

    def __init__(self, postings: str, formula: Formula) -> None:
        self._postings = postings
        self._formula = formula
        self._remembered: dict[tuple[object, ...], tuple[float, int, int]] = {}

    def forget(self) -> None:
        """Let go of remembered counts."""
        self._remembered = {}

    def counted(
        self, database: DatabaseConnection, terms: Sequence[str], scope: Scope
    ) -> Counted | None:
        """What a search has to know first; None when the scope holds nothing."""
        within = within_of(scope)
        if within is None:
            return None
        looked_for = [part for term in terms for part in self._spelled(database, term)]
        single = [held_as[0] if len(held_as) == 1 else EVERY for held_as in looked_for]
        counts = self._counts(database, {EVERY, *single}, within)
        passages, length = counts[EVERY]
        if not passages:
            return None
        known: list[Term] = []
        for held_as, spelling in zip(looked_for, single, strict=True):
            held_by = counts[spelling][0]
            if len(held_as) != 1:
                held_by = self._count_any(database, held_as, within)
            if held_by:
                known.append(Term(held_as, held_by, _idf(passages, held_by)))
        misses = len(looked_for) - len(known)
        return Counted(within, passages, length / passages, tuple(known), misses)

    def best(
        self,
        database: DatabaseConnection,
        counted: Counted,
        scope: Scope,
        page: Page,
        *,
        is_every: bool = False,
    ) -> Found:
        """Passages that hold any of the terms, or every one, with their scores."""
        if not counted.terms or (is_every and counted.misses):
            return []
        within = counted.within
        having = f"HAVING count(*) = {len(counted.terms)}" if is_every else ""
        condition, given = scope_sql.where(scope, dialect=POSTGRESQL)
        sql = BEST.replace("{held}", HELD if counted.is_plain else HELD_ONCE)
        sql = self._sql(sql.replace("{having}", having), within).replace("{condition}", condition)
        columns = map(list, zip(*_spellings(counted.terms, self._formula), strict=True))
        values = [*self._norm(counted.average), *columns, *within.given, *given]
        rows = database.execute(sql, (*values, page.limit, page.offset)).fetchall()
        return [(int(passage_id), float(score)) for passage_id, score in rows]

    def scored(
        self, rows: Iterable[TermRow], counted: Counted, weights: FieldWeights
    ) -> Iterator[tuple[int, float]]:
        """The same scores, of passages whose terms are at hand."""
        base, slope = self._norm(counted.average)
        worth = {spelling: idf for _, spelling, idf in _spellings(counted.terms, self._formula)}
        for row in rows:
            counts, length = row.counted(weights)
            norm = base + slope * length
            score = sum(
                idf * count / (count + norm)
                for term, idf in worth.items()
                if (count := counts.get(term))
            )
            if score:
                yield row.passage, score

    def _spelled(self, database: DatabaseConnection, term: str) -> list[tuple[str, ...]]:
        """A term of a query as the index has it: several ones where it begins them."""
        if not is_prefix(term):
            return [(short(part),) for part in lowered(term).split()]
        beginning = lowered(term)
        following = chr(ord(beginning) + 1)
        sql = BEGINNING.replace("{postings}", self._postings)
        rows = database.execute(sql, (beginning, following, following)).fetchall()
        return [tuple(str(row[0]) for row in rows)]

    def _counts(
        self, database: DatabaseConnection, terms: Collection[str], within: Within
    ) -> dict[str, tuple[int, int]]:
        """Of each term how many passages hold it, and how many terms those have."""
        now, parts = time.monotonic(), (within.condition, *map(tuple, within.given))
        counts: dict[str, tuple[int, int]] = {}
        for term in terms:
            until, *count = self._remembered.get((parts, term), (0.0, 0, 0))
            if until > now:
                counts[term] = (count[0], count[1])
        asked = [term for term in terms if term not in counts]
        rows = database.execute(self._sql(COUNTS, within), (asked, *within.given)).fetchall()
        for place, passages, length in rows:
            term = asked[place - 1]
            counts[term] = (int(passages), int(length))
            if passages >= REMEMBERED_FROM:
                if len(self._remembered) >= MAX_REMEMBERED:
                    self.forget()
                self._remembered[parts, term] = (now + REMEMBERED_S, *counts[term])
        return counts

    def _count_any(
        self, database: DatabaseConnection, held_as: tuple[str, ...], within: Within
    ) -> int:
        if not held_as:
            return 0
        given = (list(held_as), *within.given)
        return int(database.execute(self._sql(COUNT_ANY, within), given).fetchone()[0])

    def _norm(self, average: float) -> tuple[float, float]:
        """``k1 * (1 - b + b * D / average)`` as ``base + slope * length``."""
        k1, b, padding = self._formula.k1, self._formula.b, self._formula.padding
        slope = k1 * b / ((average + padding) or 1.0)
        return k1 * (1 - b) + slope * padding, slope

    def _sql(self, statement: str, within: Within) -> str:
        statement = statement.replace("{postings}", self._postings)
        return statement.replace("{within}", within.condition)


def _idf(passages: int, held_by: int) -> float:
    # A remembered count may be of another moment than the other.
    idf = math.log((max(passages, held_by) - held_by + 0.5) / (held_by + 0.5))
    return idf if idf > 0 else LEAST_IDF


def within_of(scope: Scope) -> Within | None:
    """The postings of a scope; None when it names nobody."""
    parts = parts_within(scope)
    if parts is None:
        vaults = [-vault for vault in sorted(scope.vaults)]
        if not vaults:
            return Within("p.part > 0", ())
        return Within("(p.part > 0 OR p.part = ANY(?::bigint[]))", (vaults,))
    if not parts:
        return None
    # A shared passage is in its owner's part as well: there it says so, and counts once.
    once = " AND NOT p.is_repeated" if scope.include_shared else ""
    return Within(f"p.part = ANY(?::bigint[]){once}", (parts,))


def _spellings(terms: Sequence[Term], formula: Formula) -> list[tuple[int, str, float]]:
    """Place, spelling and worth of each spelling."""
    return [
        (place, spelling, term.idf * (formula.k1 + 1))
        for place, term in enumerate(terms)
        for spelling in term.held_as
    ]
