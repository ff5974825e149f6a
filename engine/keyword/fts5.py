"""BM25 by SQLite's FTS5, over terms cut in Python.

One row a passage, its terms joined by spaces; the tokenizer of FTS5 only splits them again. A
query is built from quoted terms, so nothing typed is ever an operator. The scope is applied in
the same statement, by a join with the passage table.

FTS5 fixes k1 at 1.2 and b at 0.75, counts document frequency over the whole table, and floors an
idf at 1e-6. Its length of a passage is the number of terms in all columns.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol

from engine import scope_sql
from engine.errors import InvalidQuery, Unavailable
from engine.keyword.owned import OwnedPassages
from engine.keyword.term_form import is_prefix, stored
from engine.protocols import Connect
from engine.text.match import Matcher
from engine.text.tokenize import Analyzer
from engine.types import Candidate, Health, Match, Passage, Scope

MAX_EXPRESSION_TERMS = 1000
MAX_SCOPE_TERMS = 64
FIRST_PAGE = 100

CREATE = "CREATE VIRTUAL TABLE IF NOT EXISTS {table} USING fts5({columns}, tokenize='ascii')"
CREATE_IDENTITY = "CREATE TABLE IF NOT EXISTS {table}_identity (analyzer TEXT NOT NULL)"
# A build of the table has a name of its own: what others derived from it ends with it.
CREATE_BUILD = "CREATE TABLE IF NOT EXISTS {table}_build (token TEXT NOT NULL)"
NAME_BUILD = "INSERT INTO {table}_build (token) VALUES (lower(hex(randomblob(8))))"
BUILD = "SELECT token FROM {table}_build LIMIT 1"
IDENTIFY = "INSERT INTO {table}_identity (analyzer) VALUES (?)"
IDENTITY = "SELECT analyzer FROM {table}_identity LIMIT 1"
UPSERT = "INSERT OR REPLACE INTO {table} (rowid, {columns}) VALUES (?, {marks})"
DELETE = "DELETE FROM {table} WHERE rowid = ?"
DROP = (
    "DROP TABLE IF EXISTS {table}",
    "DROP TABLE IF EXISTS {table}_identity",
    "DROP TABLE IF EXISTS {table}_build",
)
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

_FILLER = "\ue100"


class Fields(Protocol):
    """The texts of a passage that match modes look at; ``Passage`` is one."""

    @property
    def title(self) -> str: ...
    @property
    def body(self) -> str: ...
    @property
    def meta(self) -> str: ...


Texts = Callable[[Collection[int]], Mapping[int, Fields]]
"""Texts of passages by id; ids that no longer exist are absent."""


class Fts5Index:
    """A ``KeywordIndex`` in the SQLite database of ``connect``.

    ``weights`` are those of title, body and metadata. With ``owns_scope`` the index creates and
    fills the passage table and keeps the texts itself (a sealed vault, a test); otherwise the
    table belongs to the product, and ``texts`` gives the texts that match modes ``all`` and
    ``phrase`` verify. A passage must be upserted again when its owner, vault or shared mark
    changes; every other scope column is read when searching.

    ``search`` raises ``InvalidQuery`` with ``empty_query`` or ``too_many_terms``, and
    ``Unavailable`` when the database cannot answer. Writes join the caller's transaction when
    there is one, and raise ``Unavailable`` when the database refuses them.
    """

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
        if not table.isidentifier():
            raise ValueError("a table name is an identifier")
        self.connect = connect
        self.analyzer = analyzer
        self.table = table
        self._columns = ["title", "body", "meta"]
        self.weights = weights
        self._weights = list(map(float, weights))
        # The seed's analyzer fixes scores, which a further column would change.
        self._has_scope_column = analyzer.padding > 0
        if self._has_scope_column:
            self._columns.append("scope")
            self._weights.append(0.0)
        self._owned = (
            OwnedPassages(connect, f"{table}_texts", analyzer.comparable) if owns_scope else None
        )
        self._texts = self._owned.texts if texts is None and self._owned is not None else texts

    def ensure(self) -> None:
        """Create the index when absent; never touches existing rows."""
        database = self.connect()
        database.execute(self._sql(CREATE))
        database.execute(self._sql(CREATE_IDENTITY))
        database.execute(self._sql(CREATE_BUILD))
        if database.execute(self._sql(BUILD)).fetchone() is None:
            database.execute(self._sql(NAME_BUILD))
        if self.built_by() is None:
            database.execute(self._sql(IDENTIFY), (self.analyzer.version,))
        if self._owned is not None:
            self._owned.ensure()

    def built_by(self) -> str | None:
        """Version of the analyzer that the rows were cut by. The index must exist."""
        row = self.connect().execute(self._sql(IDENTITY)).fetchone()
        return None if row is None else str(row[0])

    def is_current(self) -> bool:
        """Whether every row was cut by the analyzer in use."""
        return self.built_by() == self.analyzer.version

    def mark_current(self) -> None:
        """Say so, after all rows were written again."""
        sql = f"UPDATE {self.table}_identity SET analyzer = ?"
        self.connect().execute(sql, (self.analyzer.version,))

    def upsert(self, passages: Sequence[Passage]) -> None:
        """Index passages, each replacing what its id held."""
        rows = [self._row(passage) for passage in passages]
        with self.transaction():
            self.connect().executemany(self._sql(UPSERT), rows)
            if self._owned is not None:
                self._owned.upsert(passages)

    def delete(self, ids: Collection[int]) -> None:
        """Forget passages; unknown ids are fine."""
        rows = [(passage_id,) for passage_id in ids]
        with self.transaction():
            self.connect().executemany(self._sql(DELETE), rows)
            if self._owned is not None:
                self._owned.delete(rows)

    def clear(self) -> None:
        """Empty the index, even a damaged one; afterwards it belongs to this analyzer's version."""
        with self.transaction():
            database = self.connect()
            if database.execute(self._sql(FIND_DATA)).fetchone() is not None:
                database.execute(self._sql(STRUCTURE))
            for statement in DROP:
                database.execute(self._sql(statement))
            if self._owned is not None:
                self._owned.clear()
            self.ensure()

    def terms(self, query: str) -> tuple[str, ...]:
        """The distinct terms a query is cut into, in order."""
        return tuple(self.analyzer.query_terms(query))

    def search(
        self, query: str, *, scope: Scope, limit: int, match: Match = Match.ANY
    ) -> list[Candidate]:
        """Best passages within the scope: score is FTS5's bm25 turned positive."""
        terms = self.terms(query)
        if not terms:
            raise InvalidQuery("The query holds no word to look for.", code="empty_query")
        if len(terms) > MAX_EXPRESSION_TERMS:
            raise InvalidQuery("The query holds too many words.", code="too_many_terms")
        try:
            if match is Match.ANY:
                found = self._page(_any_of(terms), scope, limit, 0)
            else:
                found = self._verified(Matcher(query, match, self.analyzer), scope, limit)
        except sqlite3.Error as error:
            raise Unavailable(f"The index cannot be read ({type(error).__name__}).") from error
        return [Candidate(found_id, rank, score) for rank, (found_id, score) in enumerate(found, 1)]

    def count(self) -> int:
        """Passages indexed."""
        return int(self.connect().execute(self._sql(COUNT)).fetchone()[0])

    def health(self) -> Health:
        """Whether a real search works now. Never raises."""
        try:
            self.search("health", scope=Scope(now_ms=0, owners=None), limit=1)
            built_by, passages = self.built_by(), self.count()
        except Exception as error:  # whatever went wrong: that is what health tells
            name = type(error).__name__
            detail = {"code": "search_failed", "error": name}
            return Health(available=False, reason=f"A search failed: {name}.", detail=detail)
        is_current = built_by == self.analyzer.version
        return Health(
            available=True,
            reason="" if is_current else "Built by another version of the analyzer: reindex.",
            detail={
                "code": "" if is_current else "other_analyzer",
                "passages": passages,
                "analyzer": self.analyzer.version,
                "built_by": built_by,
            },
        )

    def _row(self, passage: Passage) -> tuple[int | str, ...]:
        fields = (passage.title, passage.body, passage.meta)
        cut = [stored(" ".join(self.analyzer.document_terms(field))) for field in fields]
        if self._has_scope_column:
            # As long for every passage, so that being shared does not change a score.
            filler = [_FILLER] * self.analyzer.padding
            cut.append(" ".join([*_scope_terms(passage), *filler][: self.analyzer.padding]))
        return (passage.id, *cut)

    def _verified(self, matcher: Matcher, scope: Scope, limit: int) -> list[tuple[int, float]]:
        """Candidates whose real text the matcher accepts, page after page until enough."""
        if self._texts is None:
            raise ValueError("match modes all and phrase need the texts of passages")
        needed = matcher.needed_terms()
        expression = _all_of(needed) if needed else _any_of(self.terms(matcher.query))
        found: list[tuple[int, float]] = []
        offset, size = 0, max(FIRST_PAGE, limit)
        while len(found) < limit:
            page = self._page(expression, scope, size, offset)
            found.extend(_accepted(matcher, page, self._texts))
            if len(page) < size:
                break
            offset, size = offset + size, size * 4
        if len(found) < limit and not needed:
            found.extend(self._parts_of_terms(matcher, found, scope))
        return found[:limit]

    def _parts_of_terms(
        self, matcher: Matcher, found: Sequence[tuple[int, float]], scope: Scope
    ) -> list[tuple[int, float]]:
        """Passages that hold the query only as parts of longer terms, by reading every text."""
        parts = matcher.unspaced_parts()
        if not parts or self._owned is None or self._texts is None:
            return []
        known = {passage_id for passage_id, _ in found}
        others = [(other, 0.0) for other in self._owned.holding(parts, scope) if other not in known]
        return _accepted(matcher, others, self._texts)

    def _page(
        self, expression: str, scope: Scope, limit: int, offset: int
    ) -> list[tuple[int, float]]:
        if limit < 1:
            return []
        condition, params = scope_sql.where(scope)
        sql = self._sql(SEARCH).replace("{condition}", condition)
        given = (self._within(expression, scope), *params, limit, offset)
        rows = self.connect().execute(sql, given).fetchall()
        return [(int(passage_id), float(score)) for passage_id, score in rows]

    def _sql(self, statement: str) -> str:
        """A statement with its identifiers, none of which anybody types."""
        names = {
            "{table}": self.table,
            "{passages}": scope_sql.TABLE,
            "{columns}": ", ".join(self._columns),
            "{marks}": ", ".join("?" * len(self._columns)),
            "{weights}": ", ".join(map(repr, self._weights)),
        }
        for name, value in names.items():
            statement = statement.replace(name, value)
        return statement

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
        return f"scope : ({_any_of(names)}) AND {fields}"

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing, within the caller's transaction or one of its own."""
        database = self.connect()
        database.execute("SAVEPOINT keyword_index")
        try:
            yield
        except BaseException as error:
            database.execute("ROLLBACK TO keyword_index")
            database.execute("RELEASE keyword_index")
            # A wrong call is a subclass of these, and no matter of the database.
            if type(error) in (sqlite3.OperationalError, sqlite3.DatabaseError):
                name = type(error).__name__
                raise Unavailable(f"The index cannot be written ({name}).") from error
            raise
        database.execute("RELEASE keyword_index")


def _accepted(
    matcher: Matcher, page: Sequence[tuple[int, float]], texts_of: Texts
) -> list[tuple[int, float]]:
    texts = texts_of([passage_id for passage_id, _ in page]) if page else {}
    return [
        (passage_id, score)
        for passage_id, score in page
        if (fields := texts.get(passage_id)) is not None
        and matcher.accepts((fields.title, fields.body, fields.meta))
    ]


def _scope_terms(passage: Passage) -> list[str]:
    if passage.vault is not None:
        return [f"v{passage.vault}"]
    owner = f"o{passage.owner}"
    return [owner, "s"] if passage.is_shared else [owner]


def _any_of(terms: Sequence[str]) -> str:
    return " OR ".join(map(_quoted, terms))


def _all_of(terms: Sequence[str]) -> str:
    return " AND ".join(map(_quoted, terms))


def _quoted(term: str) -> str:
    return f'"{stored(term)}"' + ("*" if is_prefix(term) else "")
