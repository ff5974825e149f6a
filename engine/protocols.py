"""The seams. An implementation is done when its subclass of the contract suite passes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

from engine.records import Changes, Draft, Filter, Page, Record, Search
from engine.types import (
    Beside,
    Candidate,
    Health,
    Match,
    Matrix,
    Passage,
    Place,
    Purpose,
    Scope,
    Signature,
    Vector,
)


class Cursor(Protocol):
    """The part of a DB-API cursor that index classes use."""

    def fetchall(self) -> list[Any]: ...
    def fetchone(self) -> Any: ...


class DatabaseConnection(Protocol):
    """The part of a DB-API connection that index classes use (sqlite3 shorthand)."""

    def execute(self, sql: str, parameters: Sequence[Any] = ..., /) -> Cursor: ...
    def executemany(self, sql: str, parameters: Any, /) -> Cursor: ...


Connect = Callable[[], DatabaseConnection]
"""Gives the calling thread's connection; index writes share its transaction."""


class EmbeddingSource(Protocol):
    """Turns texts into unit vectors of one signature."""

    @property
    def name(self) -> str:
        """Family of the source: ``local``, ``static``, ``remote``."""
        ...

    @property
    def model(self) -> str: ...

    @property
    def signature(self) -> Signature:
        """Identity of the vector space. Raises ``EmbeddingFailed`` when it cannot be known yet."""
        ...

    def embed(self, texts: Sequence[str], *, purpose: Purpose) -> Matrix:
        """Embed texts: shape ``(len(texts), dim)``, float32, rows of unit length.

        Raises ``EmbeddingFailed``; never returns a row that is zero or not finite.
        """
        ...

    def health(self) -> Health:
        """Whether it can embed now, by really doing so or by a recent success. Never raises."""
        ...


class TokenVectorSource(Protocol):
    """An encoder that also tells where each token of a text points."""

    def token_vectors(self, texts: Sequence[str], *, purpose: Purpose) -> list[Matrix]:
        """For each text a unit row for each token, shape ``(tokens, dim)``; no row without words.

        Raises ``EmbeddingFailed``.
        """
        ...

    def health(self) -> Health: ...


class KeywordIndex(Protocol):
    """BM25 over title, body and metadata of passages."""

    @property
    def name(self) -> str: ...

    def ensure(self) -> None:
        """Create the index when absent; never touches existing rows."""
        ...

    def upsert(self, passages: Sequence[Passage]) -> None:
        """Index passages, each replacing what its id held, and write them to the change log."""
        ...

    def delete(self, ids: Collection[int]) -> None:
        """Forget passages; unknown ids are fine."""
        ...

    def clear(self) -> None: ...

    def is_current(self) -> bool:
        """Whether every row was cut by the analyzer in use."""
        ...

    def mark_current(self) -> None:
        """Say so, after all rows were written again."""
        ...

    def terms(self, query: str) -> tuple[str, ...]:
        """The distinct terms a query is cut into, in order."""
        ...

    def search(
        self, query: str, *, scope: Scope, limit: int, match: Match = Match.ANY
    ) -> list[Candidate]:
        """Best passages within the scope, best first. Raises ``InvalidQuery`` when no term is left.

        Nothing in ``query`` is ever an operator. Ties are broken by passage id.
        """
        ...

    def count(self) -> int: ...

    def health(self) -> Health:
        """Whether a real search works now. Never raises."""
        ...


class VectorStore(Protocol):
    """Vectors by passage id, of one signature."""

    @property
    def name(self) -> str: ...

    @property
    def signature(self) -> Signature: ...

    def ensure(self) -> None:
        """Create the index of this signature when absent; never touches another's."""
        ...

    def upsert(
        self,
        vectors: Mapping[int, Vector],
        *,
        hashes: Mapping[int, str],
        languages: Mapping[int, str] | None = None,
    ) -> None:
        """Store vectors with the hash of the text they came from, and its language.

        Raises ``DimensionMismatch``, ``ZeroVector``, or ``UnknownPassage`` for an id that has no
        passage.
        """
        ...

    def delete(self, ids: Collection[int]) -> None:
        """Forget vectors; unknown ids are fine."""
        ...

    def drop(self) -> None:
        """Remove every vector of this signature."""
        ...

    def search(
        self, vector: Vector, *, scope: Scope, limit: int, language: str = ""
    ) -> list[Candidate]:
        """Nearest passages within the scope by cosine, best first, ties by passage id.

        ``language`` is that of the query, for a store that centres vectors by language.

        The scope is applied before the nearest are chosen: a small owner beside a huge one gets
        its hits.
        """
        ...

    def hashes(self, ids: Collection[int]) -> Mapping[int, str]:
        """The text hashes that stored vectors came with; passages without a vector are absent.

        Whoever compares them with the passages knows what an index lacks that was not kept up.
        """
        ...

    def count(self) -> int: ...

    def health(self) -> Health:
        """Whether a real search works now. Never raises."""
        ...


class PassageSource(Protocol):
    """Reads passages from the user-owned tables."""

    def load(self, ids: Collection[int]) -> Mapping[int, Passage]:
        """Passages by id; ids that no longer exist are absent."""
        ...

    def recent(self, scope: Scope, limit: int) -> list[int]:
        """Newest passages within the scope, one for each parent, newest first."""
        ...

    def places(self, ids: Collection[int]) -> Mapping[int, Place]:
        """Language and session of passages; those that no longer exist are absent."""
        ...

    def beside(self, ids: Collection[int], scope: Scope) -> Mapping[int, Beside]:
        """The neighbours of passages in their sessions, within the scope. What was not said in
        a session is absent."""
        ...

    def uses(self, ids: Collection[int]) -> Mapping[int, int]:
        """How often the memories of passages were retrieved; those that never were are absent."""
        ...

    def dated(self, scope: Scope, start_ms: int, end_ms: int, limit: int) -> list[int]:
        """Passages within the scope that happened in a span of time, newest first."""
        ...


class Reranker(Protocol):
    """Reorders the top candidates."""

    @property
    def name(self) -> str: ...

    def rerank(
        self, query: str, candidates: Sequence[tuple[Candidate, Passage]]
    ) -> list[Candidate]:
        """Same set out as in, in a new order. Raises ``EngineError`` when it cannot."""
        ...

    def health(self) -> Health: ...


class TextGenerator(Protocol):
    """A language model that writes text."""

    @property
    def model(self) -> str: ...

    def generate(self, messages: Sequence[Mapping[str, str]], *, max_tokens: int) -> str: ...

    def health(self) -> Health: ...


class MemoryBackend(Protocol):
    """A store of memories, our own tables or another (first seed, MemoryBackend).

    Ids are the backend's own. Everything but ``health`` raises ``BackendFailed``, and nothing
    else; an id that a backend cannot have is one it does not know.
    """

    @property
    def id(self) -> str:
        """Name in the settings."""
        ...

    @property
    def display_name(self) -> str: ...

    def initialize(self) -> None:
        """Get ready to serve; raises when it cannot."""
        ...

    def shutdown(self) -> None:
        """Let go of connections; the backend may be used again."""
        ...

    def create(self, draft: Draft) -> Record:
        """Store a new record, whatever others with the same key there are."""
        ...

    def get(self, record_id: str) -> Record | None: ...

    def update(self, record_id: str, changes: Changes) -> bool:
        """Change some fields; False when there is no such record."""
        ...

    def delete(self, record_id: str) -> bool:
        """Remove a record; False when there is none."""
        ...

    def list_records(self, wanted: Filter) -> Page:
        """One page, newest first."""
        ...

    def search(self, wanted: Search) -> list[Record]:
        """What fits a query, best first, within its owner, type and session."""
        ...

    def health(self) -> Health:
        """Whether a real call works now, with ``latency_ms`` in its detail. Never raises."""
        ...
