"""What every durable keyword index has in common: its terms, its match modes, its identity.

A durable index keeps the terms of passages in the database, and answers alone where no process
has them in memory. ``Fts5Index`` is the one of SQLite, ``PostgresIndex`` the one of Postgres.
"""

from __future__ import annotations

import secrets
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from engine.database import FAILURES, DatabaseFailed, atomic, lock
from engine.errors import InvalidQuery, Unavailable
from engine.keyword.owned import OwnedPassages
from engine.keyword.reading import reading
from engine.protocols import Connect, DatabaseConnection
from engine.text.match import Matcher
from engine.text.tokenize import Analyzer
from engine.types import Candidate, Health, Match, Passage, Scope

MAX_EXPRESSION_TERMS = 1000
FIRST_PAGE = 100
MOST_READ = 10_000
"""Texts of vaults that one search with a match mode reads before it is refused."""

CREATE_IDENTITY = "CREATE TABLE IF NOT EXISTS {table}_identity (analyzer TEXT NOT NULL)"
# A build of the table has a name of its own: what others derived from it ends with it.
CREATE_BUILD = "CREATE TABLE IF NOT EXISTS {table}_build (token TEXT NOT NULL)"
NAME_BUILD = "INSERT INTO {table}_build (token) VALUES (?)"
BUILD = "SELECT token FROM {table}_build LIMIT 1"
IDENTIFY = "INSERT INTO {table}_identity (analyzer) VALUES (?)"
IDENTITY = "SELECT analyzer FROM {table}_identity LIMIT 1"
RENAME = "UPDATE {table}_identity SET analyzer = ?"
NAMES = "SELECT (SELECT analyzer FROM {table}_identity), (SELECT token FROM {table}_build)"
DROP = ("DROP TABLE IF EXISTS {table}_identity", "DROP TABLE IF EXISTS {table}_build")

Found = list[tuple[int, float]]
"""Passage ids and scores, best first."""


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


class DurableIndex(ABC):
    """A ``KeywordIndex`` in the database of ``connect``, but for its tables.

    ``weights`` are those of title, body and metadata. With ``owns_scope`` the index creates and
    fills the passage table and keeps the texts itself (a sealed vault, a test); otherwise the
    table belongs to the product, and ``texts`` gives the texts that match modes ``all`` and
    ``phrase`` verify. A passage must be upserted again when its owner, vault or shared mark
    changes; every other scope column is read when searching.

    ``search`` raises ``InvalidQuery`` with ``empty_query``, ``too_many_terms`` or ``too_common``,
    and ``Unavailable`` when the database cannot answer. Writes join the caller's transaction when
    there is one, and raise ``Unavailable`` when the database refuses them.
    """

    name = ""

    def __init__(
        self,
        connect: Connect,
        *,
        analyzer: Analyzer,
        table: str,
        weights: tuple[float, float, float] = (5.0, 1.0, 2.0),
        texts: Texts | None = None,
        owns_scope: bool = False,
    ) -> None:
        if not table.isidentifier():
            raise ValueError("a table name is an identifier")
        self.connect = connect
        self.analyzer = analyzer
        self.table = table
        self.weights = weights
        self._owned = (
            OwnedPassages(connect, f"{table}_texts", analyzer.comparable) if owns_scope else None
        )
        self._texts = self._owned.texts if texts is None and self._owned is not None else texts

    def ensure(self) -> None:
        """Create the index when absent; never touches existing rows."""
        with self.transaction():
            database = self.connect()
            # Two processes that start together would both find no table.
            lock(database, self.table)
            self._create()
            database.execute(self._sql(CREATE_IDENTITY))
            database.execute(self._sql(CREATE_BUILD))
            if database.execute(self._sql(BUILD)).fetchone() is None:
                database.execute(self._sql(NAME_BUILD), (secrets.token_hex(8),))
            if self.built_by() is None:
                database.execute(self._sql(IDENTIFY), (self._version(),))
            if self._owned is not None:
                self._owned.ensure()

    def built_by(self) -> str | None:
        """Version of the analyzer that the rows were cut by. The index must exist."""
        row = self.connect().execute(self._sql(IDENTITY)).fetchone()
        return None if row is None else str(row[0])

    def is_current(self) -> bool:
        """Whether every row was cut by the analyzer in use."""
        return self.built_by() == self._version()

    def mark_current(self) -> None:
        """Say so, after all rows were written again."""
        self.connect().execute(self._sql(RENAME), (self._version(),))

    def build(self, database: DatabaseConnection) -> str:
        """Name of what the tables hold: another one after they were made anew."""
        analyzer, token = database.execute(self._sql(NAMES)).fetchone()
        return f"{analyzer} {token}"

    def upsert(self, passages: Sequence[Passage]) -> None:
        """Index passages, each replacing what its id held."""
        with self.transaction():
            self._store(passages)
            if self._owned is not None:
                self._owned.upsert(passages)

    def delete(self, ids: Collection[int]) -> None:
        """Forget passages; unknown ids are fine."""
        with self.transaction():
            self._forget(ids)
            if self._owned is not None:
                self._owned.delete([(passage_id,) for passage_id in ids])

    def clear(self) -> None:
        """Empty the index, even a damaged one; afterwards it belongs to this analyzer's version."""
        with self.transaction():
            self._drop()
            for statement in DROP:
                self.connect().execute(self._sql(statement))
            if self._owned is not None:
                self._owned.clear()
            self.ensure()

    def terms(self, query: str) -> tuple[str, ...]:
        """The distinct terms a query is cut into, in order."""
        return tuple(self.analyzer.query_terms(query))

    def search(
        self, query: str, *, scope: Scope, limit: int, match: Match = Match.ANY
    ) -> list[Candidate]:
        """Best passages within the scope, by BM25."""
        terms = self.terms(query)
        if not terms:
            raise InvalidQuery("The query holds no word to look for.", code="empty_query")
        if len(terms) > MAX_EXPRESSION_TERMS:
            raise InvalidQuery("The query holds too many words.", code="too_many_terms")
        try:
            with reading(self.connect()):
                if match is Match.ANY:
                    found = self._page(terms, scope, limit)
                else:
                    found = self._verified(Matcher(query, match, self.analyzer), scope, limit)
        except FAILURES as error:
            raise Unavailable(f"The index cannot be read ({type(error).__name__}).") from error
        return [Candidate(found_id, rank, score) for rank, (found_id, score) in enumerate(found, 1)]

    @abstractmethod
    def count(self) -> int:
        """Passages indexed."""

    @abstractmethod
    def stored_terms(
        self, database: DatabaseConnection, ids: Collection[int], where: tuple[str, Sequence[Any]]
    ) -> list[tuple[Any, ...]]:
        """Scope columns, then terms of title, body and metadata (UTF-8, joined by spaces).

        Of those passages with these ids that meet a condition on the passage table ``p``; one
        whose terms the index has lost is absent.
        """

    def health(self) -> Health:
        """Whether a real search works now. Never raises."""
        try:
            self.search("health", scope=Scope(now_ms=0, owners=None), limit=1)
            with reading(self.connect()):
                built_by, passages = self.built_by(), self.count()
        except Exception as error:  # whatever went wrong: that is what health tells
            name = type(error).__name__
            detail = {"code": "search_failed", "error": name, "index": self.name}
            return Health(available=False, reason=f"A search failed: {name}.", detail=detail)
        is_current = built_by == self._version()
        return Health(
            available=True,
            reason="" if is_current else "Built by another version of the analyzer: reindex.",
            detail={
                "code": "" if is_current else "other_analyzer",
                "index": self.name,
                "passages": passages,
                "analyzer": self.analyzer.version,
                "built_by": built_by,
            },
        )

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing, within the caller's transaction or one of its own."""
        try:
            with atomic(self.connect()):
                yield
        except FAILURES as error:
            # A wrong call is a subclass of these, and no matter of the database.
            if type(error) not in (
                sqlite3.OperationalError,
                sqlite3.DatabaseError,
                DatabaseFailed,
            ):
                raise
            name = type(error).__name__
            raise Unavailable(f"The index cannot be written ({name}).") from error

    @abstractmethod
    def _create(self) -> None:
        """Make the tables of the terms when absent."""

    @abstractmethod
    def _drop(self) -> None:
        """Remove them, even damaged ones."""

    @abstractmethod
    def _store(self, passages: Sequence[Passage]) -> None:
        """Write the terms of passages."""

    @abstractmethod
    def _forget(self, ids: Collection[int]) -> None:
        """Remove the terms of passages."""

    @abstractmethod
    def _page(
        self,
        terms: Sequence[str],
        scope: Scope,
        limit: int,
        *,
        offset: int = 0,
        is_every: bool = False,
    ) -> Found:
        """The best passages that hold any of some terms, or every one, from a place on."""

    def _version(self) -> str:
        """What the rows depend on beside the texts."""
        return self.analyzer.version

    def _verified(self, matcher: Matcher, scope: Scope, limit: int) -> Found:
        """Candidates whose real text the matcher accepts, page after page until enough."""
        if self._texts is None:
            raise ValueError("match modes all and phrase need the texts of passages")
        needed = matcher.needed_terms()
        terms = needed or self.terms(matcher.query)
        found: Found = []
        offset, size = 0, max(FIRST_PAGE, limit)
        while len(found) < limit:
            if scope.vaults:
                size = _within_most(size, offset)
            page = self._page(terms, scope, size, offset=offset, is_every=bool(needed))
            found.extend(_accepted(matcher, page, self._texts))
            if len(page) < size:
                break
            offset, size = offset + size, size * 4
        if len(found) < limit and not needed:
            found.extend(self._parts_of_terms(matcher, found, scope))
        return found[:limit]

    def _parts_of_terms(self, matcher: Matcher, found: Found, scope: Scope) -> Found:
        """Passages that hold the query only as parts of longer terms, by reading every text."""
        parts = matcher.unspaced_parts()
        if not parts or self._owned is None or self._texts is None:
            return []
        known = {passage_id for passage_id, _ in found}
        others = [(other, 0.0) for other in self._owned.holding(parts, scope) if other not in known]
        return _accepted(matcher, others, self._texts)

    def _sql(self, statement: str) -> str:
        """A statement with the name of the table, which nobody types."""
        return statement.replace("{table}", self.table)


def _within_most(size: int, offset: int) -> int:
    """How many more texts of a vault may be read: libraries may be large, and readers many."""
    if offset > MOST_READ:
        raise InvalidQuery(
            f"More than {MOST_READ:,} passages hold these words; add a rarer one.",
            code="too_common",
        )
    # One more, which tells whether there are more.
    return min(size, MOST_READ + 1 - offset)


def _accepted(matcher: Matcher, page: Found, texts_of: Texts) -> Found:
    texts = texts_of([passage_id for passage_id, _ in page]) if page else {}
    return [
        (passage_id, score)
        for passage_id, score in page
        if (fields := texts.get(passage_id)) is not None
        and matcher.accepts((fields.title, fields.body, fields.meta))
    ]
