"""The best passages by BM25 in two statements over a table of postings.

The first counts: passages and terms of the parts searched, and passages that hold each term. The
second adds up what each term gives a passage, and reads scope columns of the best ones in their
order until there are enough.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from engine import scope_sql
from engine.database import POSTGRESQL
from engine.keyword.bm25 import LEAST_IDF, Formula
from engine.keyword.durable import Found
from engine.keyword.posting_rows import EVERY, MAX_WEIGHT, lowered, parts_within, short
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


@dataclass(frozen=True, slots=True)
class Page:
    """Which of the passages, best first."""

    limit: int
    offset: int = 0


@dataclass(frozen=True, slots=True)
class _Term:
    """A term of the query: the terms of the index that count as it, and what it is worth."""

    held_as: tuple[str, ...]
    idf: float


@dataclass(frozen=True, slots=True)
class _Within:
    """SQL for the postings of the parts of a scope (table ``p``)."""

    condition: str
    given: tuple[Any, ...]


class PostingSearch:
    """Searches one table of postings with one formula."""

    def __init__(self, postings: str, formula: Formula) -> None:
        self._postings = postings
        self._formula = formula

    def run(
        self,
        database: DatabaseConnection,
        terms: Sequence[str],
        scope: Scope,
        page: Page,
        *,
        is_every: bool,
    ) -> Found:
        """Passages that hold any of the terms, or every one, with their scores."""
        within = _within(scope)
        if within is None:
            return []
        looked_for = [part for term in terms for part in self._spelled(database, term)]
        average, known = self._counted(database, looked_for, within)
        if not known or (is_every and len(known) < len(looked_for)):
            return []
        having = f"HAVING count(*) = {len(known)}" if is_every else ""
        is_plain = all(len(term.held_as) == 1 for term in known)
        condition, given = scope_sql.where(scope, dialect=POSTGRESQL)
        sql = BEST.replace("{held}", HELD if is_plain else HELD_ONCE).replace("{having}", having)
        sql = self._sql(sql, within).replace("{condition}", condition)
        values = [*self._norm(average), *_columns(known, self._formula), *within.given, *given]
        rows = database.execute(sql, (*values, page.limit, page.offset)).fetchall()
        return [(int(passage_id), float(score)) for passage_id, score in rows]

    def _spelled(self, database: DatabaseConnection, term: str) -> list[tuple[str, ...]]:
        """A term of a query as the index has it: several ones where it begins them."""
        if not is_prefix(term):
            return [(short(part),) for part in lowered(term).split()]
        beginning = lowered(term)
        following = chr(ord(beginning) + 1)
        sql = BEGINNING.replace("{postings}", self._postings)
        rows = database.execute(sql, (beginning, following, following)).fetchall()
        return [tuple(str(row[0]) for row in rows)]

    def _counted(
        self,
        database: DatabaseConnection,
        looked_for: Sequence[tuple[str, ...]],
        within: _Within,
    ) -> tuple[float, list[_Term]]:
        """Average length of a passage, and the terms that some passage holds."""
        single = [held_as[0] if len(held_as) == 1 else "" for held_as in looked_for]
        sql = self._sql(COUNTS, within)
        rows = database.execute(sql, ([EVERY, *single], *within.given)).fetchall()
        (_, passages, length), *others = rows
        if not passages:
            return 0.0, []
        known: list[_Term] = []
        for held_as, (_, count, _terms) in zip(looked_for, others, strict=True):
            if len(held_as) != 1:
                count = self._count_any(database, held_as, within)
            if count:
                idf = math.log((passages - count + 0.5) / (count + 0.5))
                known.append(_Term(held_as, idf if idf > 0 else LEAST_IDF))
        return float(length) / passages, known

    def _count_any(
        self, database: DatabaseConnection, held_as: tuple[str, ...], within: _Within
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

    def _sql(self, statement: str, within: _Within) -> str:
        statement = statement.replace("{postings}", self._postings)
        return statement.replace("{within}", within.condition)


def _within(scope: Scope) -> _Within | None:
    """The postings of a scope; None when it names nobody."""
    parts = parts_within(scope)
    if parts is None:
        vaults = [-vault for vault in sorted(scope.vaults)]
        if not vaults:
            return _Within("p.part > 0", ())
        return _Within("(p.part > 0 OR p.part = ANY(?::bigint[]))", (vaults,))
    if not parts:
        return None
    # A shared passage is in its owner's part as well: there it says so, and counts once.
    once = " AND NOT p.is_repeated" if scope.include_shared else ""
    return _Within(f"p.part = ANY(?::bigint[]){once}", (parts,))


def _columns(terms: Sequence[_Term], formula: Formula) -> list[list[Any]]:
    """Place, spelling and worth of each spelling."""
    spelled = [
        (place, spelling, term.idf * (formula.k1 + 1))
        for place, term in enumerate(terms)
        for spelling in term.held_as
    ]
    return [*map(list, zip(*spelled, strict=True))]
