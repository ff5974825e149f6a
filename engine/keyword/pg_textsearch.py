"""BM25 on Postgres with the extension pg_textsearch for what is long to read.

Its index knows no owner, and its scores are those of every owner's texts. So it only names the
candidates, where the passages searched are a good share of all and their postings are many; those
candidates are then scored from their own terms, by the formula and the counts of
``PostgresIndex``. Whatever else is asked (a small owner, every word, beginnings of words) is
answered from the postings alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from engine import scope_sql
from engine.database import FAILURES, POSTGRESQL, atomic
from engine.keyword.durable import Found
from engine.keyword.postgres import COLUMNS, PostgresIndex
from engine.keyword.posting_rows import MAX_TERM, TermRow, short
from engine.keyword.posting_search import Counted, Page
from engine.protocols import Connect, DatabaseConnection
from engine.types import Scope

EXTENSION: Final = "pg_textsearch"
INSTALLED: Final = "SELECT 1 FROM pg_extension WHERE extname = ?"
LOADED: Final = "SELECT current_setting(?, true) IS NOT NULL"
INSTALL: Final = f"CREATE EXTENSION IF NOT EXISTS {EXTENSION}"
ADD_COLUMN: Final = "ALTER TABLE {table} ADD COLUMN IF NOT EXISTS cut TEXT NOT NULL DEFAULT ''"
CREATE_INDEX: Final = """
    CREATE INDEX IF NOT EXISTS {table}_bm25 ON {table} USING bm25 (cut)
    WITH (text_config = 'pg_catalog.simple', k1 = 1.2, b = 0.75)"""
# Materialized, so that the index is read in its order, whatever the scope.
NEAR: Final = f"""
    WITH near AS MATERIALIZED (
        SELECT passage_id, part, is_shared, title, body, meta FROM {{table}}
        ORDER BY cut <@> to_bm25query(?, '{{table}}_bm25') LIMIT ?)
    SELECT p.id IS NOT NULL, n.* FROM near n
    LEFT JOIN {scope_sql.TABLE} p ON p.id = n.passage_id AND {{condition}}"""
SIZE: Final = "SELECT greatest(reltuples, 1) FROM pg_class WHERE oid = to_regclass(?)"

LETTERS: Final = str.maketrans("0123456789abcdef", "ghijklmnopqrstuv")
FILLER: Final = "x"
SCANNED: Final = 10
"""Candidates for each passage that is wanted."""
ENOUGH: Final = 3
"""So many for each have to be within the scope, or the postings are read."""


def is_available(connect: Connect) -> bool:
    """Whether the extension is there, or can be had without anybody's help."""
    database = connect()
    if database.execute(INSTALLED, (EXTENSION,)).fetchone() is not None:
        return True
    # A server that has not loaded it at its start would refuse.
    if not database.execute(LOADED, (f"{EXTENSION}.library_version",)).fetchone()[0]:
        return False
    try:
        with atomic(database):
            database.execute(INSTALL)
    except FAILURES:
        return False
    return True


class PgTextsearchIndex(PostgresIndex):
    """``PostgresIndex`` that is quick for large owners as well."""

    name = "pg_textsearch"
    columns = (*COLUMNS, ("cut", "text"))

    many_postings = 100_000
    """From so many on the extension is asked."""
    least_share = 0.1
    """Unless the passages searched are a smaller share of all."""
    _is_filled = False

    def _version(self) -> str:
        return f"{super()._version()} {EXTENSION}-1"

    def _create(self) -> None:
        super()._create()
        self.connect().execute(self._sql(ADD_COLUMN))
        self.connect().execute(self._sql(CREATE_INDEX))

    def _page(
        self,
        terms: Sequence[str],
        scope: Scope,
        limit: int,
        *,
        offset: int = 0,
        is_every: bool = False,
    ) -> Found:
        if limit < 1:
            return []
        database, page = self.connect(), Page(limit, offset)
        counted = self._search.counted(database, terms, scope)
        if counted is None:
            return []
        if not (is_every or offset) and self._is_long(database, counted):
            near = self._near(database, counted, scope, limit)
            if near is not None:
                found = self._search.scored(near, counted, self._weights)
                return sorted(found, key=lambda hit: (-hit[1], hit[0]))[:limit]
        return self._search.best(database, counted, scope, page, is_every=is_every)

    def _is_long(self, database: DatabaseConnection, counted: Counted) -> bool:
        """Whether the extension would be quicker, and would find this owner's passages."""
        if counted.postings < self.many_postings or not counted.is_plain:
            return False
        # Until every row is written again the column is not what it should be.
        self._is_filled = self._is_filled or self.is_current()
        if not self._is_filled:
            return False
        (size,) = database.execute(SIZE, (self.table,)).fetchone()
        is_large: bool = counted.passages >= float(size) * self.least_share
        return is_large

    def _near(
        self, database: DatabaseConnection, counted: Counted, scope: Scope, limit: int
    ) -> list[TermRow] | None:
        """Candidates within the scope; None when they are too few to hold all the best."""
        condition, given = scope_sql.where(scope, dialect=POSTGRESQL)
        sql = self._sql(NEAR).replace("{condition}", condition)
        query = " ".join(_spelled(term) for held in counted.terms for term in held.held_as)
        rows = database.execute(sql, (query, limit * SCANNED, *given)).fetchall()
        # Version 1.0.0 names some rows twice once its index has several segments.
        found = [TermRow(*row) for row in dict.fromkeys(row[1:] for row in rows if row[0])]
        is_all = len(rows) < limit * SCANNED
        return found if is_all or len(found) >= limit * ENOUGH else None

    def _values(self, rows: Sequence[TermRow]) -> list[list[Any]]:
        title, body, meta = self._weights
        filler = [FILLER] * self.analyzer.padding
        cut = [
            " ".join(
                [
                    *map(_spelled, row.title.split() * title),
                    *map(_spelled, row.body.split() * body),
                    *map(_spelled, row.meta.split() * meta),
                    *filler,
                ]
            )
            for row in rows
        ]
        return [*super()._values(rows), cut]


def _spelled(term: str) -> str:
    """A term as one word of letters, which no parser of Postgres takes apart.

    Words of a to z stay; the bytes of others are letters from g to v. The first letter says which.
    """
    if term.isascii() and term.isalpha() and len(term) <= MAX_TERM:
        return f"w{term}"
    return f"y{short(term).encode().hex().translate(LETTERS)}"
