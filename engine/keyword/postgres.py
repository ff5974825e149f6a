"""BM25 on plain Postgres, from a table of postings.

A posting is a row: term, part, passage, and what the formula needs of it. One index covers them
all, so that a search reads only entries of that index, and of those only its own owners': whose
passage it is comes second in the key. Scope columns are read for the best ones, in their order,
until there are enough.

The formula is that of FTS5 (``engine.keyword.bm25``). How many passages there are, how long they
are and how many hold a term is counted in the parts that are searched: nobody's words show in
the scores of another.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any, Final, cast

from engine import scope_sql
from engine.columns.table import SCOPE_FIELDS, SCOPE_WIDTH
from engine.database import dialect_of
from engine.keyword.bm25 import Formula
from engine.keyword.durable import DurableIndex, Found, Texts
from engine.keyword.posting_rows import EVERY, SHARED, Key, TermRow, rows_of
from engine.keyword.posting_search import Page, PostingSearch
from engine.postgres import PostgresConnection, failing
from engine.protocols import Connect, DatabaseConnection
from engine.text.tokenize import Analyzer
from engine.types import Passage, Scope

CREATE_TERMS: Final = """
    CREATE TABLE IF NOT EXISTS {table} (
        passage_id BIGINT PRIMARY KEY, part BIGINT NOT NULL, is_shared BOOLEAN NOT NULL,
        title TEXT NOT NULL, body TEXT NOT NULL, meta TEXT NOT NULL)"""
# Entries of the index are read without their rows only once a vacuum has seen those.
CREATE_POSTINGS: Final = """
    CREATE TABLE IF NOT EXISTS {table}_posting (
        part BIGINT NOT NULL, passage_id BIGINT NOT NULL, length INTEGER NOT NULL,
        weight SMALLINT NOT NULL, is_repeated BOOLEAN NOT NULL, term TEXT COLLATE "C" NOT NULL)
    WITH (autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_vacuum_scale_factor = 0.05,
        autovacuum_analyze_scale_factor = 0.05)"""
CREATE_INDEX: Final = """
    CREATE INDEX IF NOT EXISTS {table}_posting_key ON {table}_posting (term, part, passage_id)
    INCLUDE (length, weight, is_repeated)"""
DROP: Final = ("DROP TABLE IF EXISTS {table}", "DROP TABLE IF EXISTS {table}_posting")
# Whoever comes second waits here for the first to commit, and then finds what that one stored.
ADD: Final = """
    INSERT INTO {table} ({columns}) SELECT {columns} FROM {rows} ORDER BY passage_id
    ON CONFLICT DO NOTHING RETURNING passage_id"""
HELD: Final = """
    SELECT passage_id, part, is_shared, title, body, meta FROM {table}
    WHERE passage_id = ANY(?::bigint[]) ORDER BY passage_id FOR UPDATE"""
REPLACE: Final = """
    UPDATE {table} old SET {changes} FROM {rows} WHERE old.passage_id = new.passage_id"""
REMOVE: Final = "DELETE FROM {table} WHERE passage_id = ANY(?::bigint[])"
REMOVE_POSTINGS: Final = """
    DELETE FROM {table}_posting old
    USING unnest(?::text[], ?::bigint[], ?::bigint[]) AS gone (term, part, passage_id)
    WHERE old.term = gone.term COLLATE "C" AND old.part = gone.part
        AND old.passage_id = gone.passage_id"""
COPY: Final = """
    COPY {table}_posting (term, part, passage_id, length, weight, is_repeated) FROM STDIN"""
COLUMNS: Final = (
    ("passage_id", "bigint"),
    ("part", "bigint"),
    ("is_shared", "boolean"),
    ("title", "text"),
    ("body", "text"),
    ("meta", "text"),
)
COUNT: Final = f"""
    SELECT least((SELECT count(*) FROM {{table}}), (SELECT count(*) FROM {{table}}_posting
        WHERE term = '{EVERY}' AND part <> {SHARED}))"""
TABLES: Final = "SELECT to_regclass(?) IS NOT NULL, to_regclass(?) IS NOT NULL"
TERMS: Final = f"""
    SELECT {SCOPE_FIELDS}, t.title, t.body, t.meta
    FROM {scope_sql.TABLE} p JOIN {{table}} t ON t.passage_id = p.id
    WHERE p.id {{among}} AND {{condition}}"""


class PostgresIndex(DurableIndex):
    """``DurableIndex`` of Postgres. ``weights`` are whole numbers."""

    name = "postgres"
    columns: tuple[tuple[str, str], ...] = COLUMNS
    """Columns of the table of terms, and their types."""

    def __init__(
        self,
        connect: Connect,
        *,
        analyzer: Analyzer,
        table: str = "memory_terms",
        weights: tuple[float, float, float] = (5.0, 1.0, 2.0),
        texts: Texts | None = None,
        owns_scope: bool = False,
    ) -> None:
        super().__init__(
            connect,
            analyzer=analyzer,
            table=table,
            weights=weights,
            texts=texts,
            owns_scope=owns_scope,
        )
        title, body, meta = map(int, weights)
        self._weights = (title, body, meta)
        self._search = PostingSearch(f"{table}_posting", Formula(padding=analyzer.padding))

    def count(self) -> int:
        """Passages indexed."""
        return int(self.connect().execute(self._sql(COUNT)).fetchone()[0])

    def stored_terms(
        self, database: DatabaseConnection, ids: Collection[int], where: tuple[str, Sequence[Any]]
    ) -> list[tuple[Any, ...]]:
        """Scope columns and terms of passages: see ``DurableIndex``."""
        condition, given = where
        sql = self._sql(TERMS).replace("{condition}", condition)
        sql = sql.replace("{among}", dialect_of(database).among)
        rows = database.execute(sql, (json.dumps(list(ids)), *given)).fetchall()
        return [
            (*row[:SCOPE_WIDTH], *(field.encode() for field in row[SCOPE_WIDTH:])) for row in rows
        ]

    def _version(self) -> str:
        # Postings hold the weights as well.
        return f"{super()._version()} {'-'.join(map(str, self._weights))}"

    def _create(self) -> None:
        names = (self.table, f"{self.table}_posting")
        has_terms, has_postings = self.connect().execute(TABLES, names).fetchone()
        if has_terms != has_postings:
            # Neither is of use without the other.
            self._drop()
        for statement in (CREATE_TERMS, CREATE_POSTINGS, CREATE_INDEX):
            self.connect().execute(self._sql(statement))

    def _drop(self) -> None:
        self._search.forget()
        for statement in DROP:
            self.connect().execute(self._sql(statement))

    def _store(self, passages: Sequence[Passage]) -> None:
        rows = rows_of(passages, self.analyzer)
        if not rows:
            return
        added = self.connect().execute(self._sql(ADD), self._values(rows)).fetchall()
        new = {int(row[0]) for row in added}
        if old := [row for row in rows if row.passage not in new]:
            self._remove_postings([row.passage for row in old])
            self.connect().execute(self._sql(REPLACE), self._values(old))
        lines = [line for row in rows for line in row.lines(self._weights)]
        # In the order of the index, neighbours go to the same page.
        lines.sort()
        self._copy("".join(lines))

    def _forget(self, ids: Collection[int]) -> None:
        if not ids:
            return
        self._remove_postings(ids)
        self.connect().execute(self._sql(REMOVE), (list(ids),))

    def _remove_postings(self, ids: Collection[int]) -> None:
        database = self.connect()
        held = database.execute(self._sql(HELD), (list(ids),)).fetchall()
        keys: list[Key] = [key for row in held for key in TermRow(*row).postings()]
        if keys:
            database.execute(self._sql(REMOVE_POSTINGS), [*map(list, zip(*keys, strict=True))])

    def _copy(self, lines: str) -> None:
        """Write postings in one go."""
        raw = cast(PostgresConnection, self.connect()).raw
        with failing(), raw.cursor().copy(self._sql(COPY).encode()) as copy:
            copy.write(lines)

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
        database = self.connect()
        counted = self._search.counted(database, terms, scope)
        if counted is None:
            return []
        page = Page(limit, offset)
        return self._search.best(database, counted, scope, page, is_every=is_every)

    def _values(self, rows: Sequence[TermRow]) -> list[list[Any]]:
        """Values of each column."""
        return [
            [row.passage for row in rows],
            [row.part for row in rows],
            [row.is_shared for row in rows],
            [row.title for row in rows],
            [row.body for row in rows],
            [row.meta for row in rows],
        ]

    def _sql(self, statement: str) -> str:
        """A statement with its identifiers, none of which anybody types."""
        names = [name for name, _ in self.columns]
        values = ", ".join(f"?::{kind}[]" for _, kind in self.columns)
        changes = ", ".join(f"{name} = new.{name}" for name in names[1:])
        statement = statement.replace("{rows}", f"unnest({values}) AS new ({', '.join(names)})")
        statement = statement.replace("{columns}", ", ".join(names)).replace("{changes}", changes)
        return super()._sql(statement)
