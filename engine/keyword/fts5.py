"""BM25 by SQLite's FTS5, over terms cut in Python.

One row a passage, its terms joined by spaces; the tokenizer of FTS5 only splits them again. A
query is built from quoted terms, so nothing typed is ever an operator. The scope is applied in
the same statement, by a join with the passage table.

FTS5 fixes k1 at 1.2 and b at 0.75, counts document frequency over the whole table, and floors an
idf at 1e-6. Its length of a passage is the number of terms in all columns.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any

from engine import scope_sql
from engine.columns.table import SCOPE_FIELDS
from engine.keyword.durable import DurableIndex, Found, Texts
from engine.keyword.term_form import is_prefix, stored
from engine.protocols import Connect, DatabaseConnection
from engine.text.tokenize import Analyzer
from engine.types import Passage, Scope

MAX_SCOPE_TERMS = 64

CREATE = "CREATE VIRTUAL TABLE IF NOT EXISTS {table} USING fts5({columns}, tokenize='ascii')"
UPSERT = "INSERT OR REPLACE INTO {table} (rowid, {columns}) VALUES (?, {marks})"
DELETE = "DELETE FROM {table} WHERE rowid = ?"
DROP = "DROP TABLE IF EXISTS {table}"
# FTS5 cannot even drop a table whose structure record (row 10) is lost: this is an empty one.
FIND_DATA = "SELECT 1 FROM sqlite_master WHERE name = '{table}_data'"
STRUCTURE = "INSERT OR IGNORE INTO {table}_data (id, block) VALUES (10, x'00000000000000')"
COUNT = "SELECT count(*) FROM {table}_docsize"
# CROSS JOIN keeps the planner from walking the passage table first.
SEARCH = """
    SELECT p.id, -bm25({table}, {weights}) FROM {table} CROSS JOIN {passages} p
    ON p.id = {table}.rowid
    WHERE {table} MATCH ? AND {condition}
    ORDER BY bm25({table}, {weights}), p.id LIMIT ? OFFSET ?"""
# And here, to the ids that were asked for.
TERMS = f"""
    SELECT {SCOPE_FIELDS}, CAST(c.c0 AS BLOB), CAST(c.c1 AS BLOB), CAST(c.c2 AS BLOB)
    FROM json_each(?) wanted CROSS JOIN {scope_sql.TABLE} p ON p.id = wanted.value
    CROSS JOIN {{table}}_content c ON c.id = p.id
    WHERE {{condition}}"""

_FILLER = "\ue100"


class Fts5Index(DurableIndex):
    """``DurableIndex`` of SQLite. Scores are those of FTS5's bm25 turned positive."""

    name = "fts5"

    def __init__(
        self,
        connect: Connect,
        *,
        analyzer: Analyzer,
        table: str = "memory_fts",
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
        self._columns = ["title", "body", "meta"]
        self._weights = list(map(float, weights))
        # The seed's analyzer fixes scores, which a further column would change.
        self._has_scope_column = analyzer.padding > 0
        if self._has_scope_column:
            self._columns.append("scope")
            self._weights.append(0.0)

    def count(self) -> int:
        """Passages indexed."""
        return int(self.connect().execute(self._sql(COUNT)).fetchone()[0])

    def stored_terms(
        self, database: DatabaseConnection, ids: Collection[int], where: tuple[str, Sequence[Any]]
    ) -> list[tuple[Any, ...]]:
        """Scope columns and terms of passages: see ``DurableIndex``."""
        condition, given = where
        sql = self._sql(TERMS).replace("{condition}", condition)
        return database.execute(sql, (json.dumps(list(ids)), *given)).fetchall()

    def _create(self) -> None:
        self.connect().execute(self._sql(CREATE))

    def _drop(self) -> None:
        database = self.connect()
        if database.execute(self._sql(FIND_DATA)).fetchone() is not None:
            database.execute(self._sql(STRUCTURE))
        database.execute(self._sql(DROP))

    def _store(self, passages: Sequence[Passage]) -> None:
        self.connect().executemany(self._sql(UPSERT), list(map(self._row, passages)))

    def _forget(self, ids: Collection[int]) -> None:
        rows = [(passage_id,) for passage_id in ids]
        self.connect().executemany(self._sql(DELETE), rows)

    def _row(self, passage: Passage) -> tuple[int | str, ...]:
        fields = (passage.title, passage.body, passage.meta)
        cut = [stored(" ".join(self.analyzer.document_terms(field))) for field in fields]
        if self._has_scope_column:
            # As long for every passage, so that being shared does not change a score.
            filler = [_FILLER] * self.analyzer.padding
            cut.append(" ".join([*_scope_terms(passage), *filler][: self.analyzer.padding]))
        return (passage.id, *cut)

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
        expression = (" AND " if is_every else " OR ").join(map(_quoted, terms))
        condition, params = scope_sql.where(scope)
        sql = self._sql(SEARCH).replace("{condition}", condition)
        given = (self._within(expression, scope), *params, limit, offset)
        rows = self.connect().execute(sql, given).fetchall()
        return [(int(passage_id), float(score)) for passage_id, score in rows]

    def _sql(self, statement: str) -> str:
        """A statement with its identifiers, none of which anybody types."""
        names = {
            "{passages}": scope_sql.TABLE,
            "{columns}": ", ".join(self._columns),
            "{marks}": ", ".join("?" * len(self._columns)),
            "{weights}": ", ".join(map(repr, self._weights)),
        }
        for name, value in names.items():
            statement = statement.replace(name, value)
        return super()._sql(statement)

    def _within(self, expression: str, scope: Scope) -> str:
        """The expression, narrowed to whom the scope names: a small owner is found at once."""
        if not self._has_scope_column:
            return expression
        fields = f"{{title body meta}} : ({expression})"
        if scope.owners is None:
            return fields
        names = [f"o{owner}" for owner in sorted(scope.owners)]
        names.extend(f"v{vault}" for vault in sorted(scope.vaults))
        if scope.include_shared:
            names.append("s")
        if not 0 < len(names) <= MAX_SCOPE_TERMS:
            return fields
        return f"scope : ({' OR '.join(map(_quoted, names))}) AND {fields}"


def _scope_terms(passage: Passage) -> list[str]:
    if passage.vault is not None:
        return [f"v{passage.vault}"]
    owner = f"o{passage.owner}"
    return [owner, "s"] if passage.is_shared else [owner]


def _quoted(term: str) -> str:
    return f'"{stored(term)}"' + ("*" if is_prefix(term) else "")
