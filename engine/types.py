"""The values that cross the engine's border: frozen dataclasses and enums, never dicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float32]
"""One float32 vector of unit length, shape ``(dim,)``."""

Matrix = npt.NDArray[np.float32]
"""Unit vectors as rows, shape ``(n, dim)``."""


class MemoryType(StrEnum):
    """What kind of statement a memory is (first seed)."""

    FACTUAL = "factual"
    EPISODIC = "episodic"
    PROCEDURAL = "procedural"
    SEMANTIC = "semantic"


class PassageKind(StrEnum):
    """What a passage is a piece of."""

    MEMORY = "memory"
    CARD = "card"


class Mode(StrEnum):
    """How candidates are found. The seeds' own words are translated at the edges only."""

    KEYWORD = "keyword"
    VECTOR = "vector"
    HYBRID = "hybrid"
    RECENT = "recent"


class Match(StrEnum):
    """Which terms of a query a keyword hit must hold."""

    ANY = "any"
    ALL = "all"
    PHRASE = "phrase"


class Purpose(StrEnum):
    """Why a text is embedded; models prefix queries and documents differently."""

    QUERY = "query"
    DOCUMENT = "document"


class Tier(StrEnum):
    """Which tier answered."""

    RECENT = "recent"
    KEYWORD = "keyword"
    VECTOR = "vector"
    HYBRID = "hybrid"
    BACKEND = "backend"
    """Another store of memories, which is primary and searches by itself."""


class Fusion(StrEnum):
    """How two lists become one: by reciprocal ranks (both seeds), or by normalised scores."""

    RRF = "rrf"
    SCORES = "scores"


@dataclass(frozen=True, slots=True)
class Signature:
    """Identity of a vector space. Vectors of different signatures are never compared.

    ``revision`` covers the weights and the template of the embedded text.
    """

    source: str
    model: str
    revision: str
    dim: int
    quantization: str = ""

    def __str__(self) -> str:
        parts = [self.source, self.model, self.revision, str(self.dim)]
        if self.quantization:
            parts.append(self.quantization)
        return ":".join(parts)


@dataclass(frozen=True, slots=True)
class Scope:
    """What one search may see; the only way a search learns it.

    ``owners`` None means every owner (a manager who asked for all); an empty set matches
    nothing but shared rows. Times are milliseconds since the epoch, UTC. A passage is live when
    it is not archived, not expired at ``now_ms``, and pinned or retained after the cut-off of
    its type in ``retained_after_ms`` (types without an entry are kept for ever).
    """

    now_ms: int
    owners: frozenset[int] | None = frozenset()
    include_shared: bool = False
    vaults: frozenset[int] = frozenset()
    session: str | None = None
    types: frozenset[MemoryType | PassageKind] = frozenset()
    """Types of memories; what lies in a vault has its kind as type."""
    retained_after_ms: Mapping[MemoryType, int] = field(default_factory=dict)
    excluded: frozenset[int] = frozenset()
    """Passage ids left out for a reason outside the columns, such as typed decay."""
    only: frozenset[int] | None = None
    """Passage ids to keep to: what a filter over something else than columns has left."""


@dataclass(frozen=True, slots=True)
class Passage:
    """What is indexed: a memory, or one piece of a long memory or of a knowledge card.

    ``title``, ``body`` and ``meta`` are the three indexed fields (weights 5, 1, 2).
    ``text_hash`` is the SHA-256 of the embedded text. ``parent`` is the id of the memory or
    card; ``parent_tokens`` what injecting that parent costs.
    """

    id: int
    kind: PassageKind
    parent: str
    ordinal: int
    owner: int
    title: str
    body: str
    meta: str
    text_hash: str
    parent_tokens: int
    type: MemoryType | None = None
    vault: int | None = None
    session: str = ""
    created_ms: int = 0
    retained_ms: int = 0
    expires_ms: int | None = None
    is_pinned: bool = False
    is_shared: bool = False
    is_archived: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """Where a passage stands: its language, and the conversation that it is a turn of.

    ``session`` is empty for what was not said in one; then ``speaker`` may still be given.
    """

    language: str
    owner: int
    session: str = ""
    speaker: str = ""
    occurred_ms: int = 0


Beside = tuple[int | None, int | None]
"""The passages before and after one in its session, of those that a scope sees."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A passage found by one list. ``rank`` is 1-based; higher ``score`` is better."""

    passage_id: int
    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class Health:
    """The state of one tier. ``reason`` is empty only when nothing is wrong."""

    available: bool
    reason: str = ""
    detail: Mapping[str, str | int | float | bool | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Degraded:
    """One tier that did not serve, and why. ``code`` is stable, ``message`` for people."""

    tier: str
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Query:
    """One retrieval as asked. ``text`` may be empty only in mode ``recent``."""

    text: str
    mode: Mode = Mode.HYBRID
    match: Match = Match.ANY
    limit: int = 20
    max_tokens: int = 2000
    trace: bool = False


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage that came back, with every score that placed it (None: not in that list).

    ``tokens`` is what the hit costs within the budget; ``is_truncated`` marks the first hit when
    it alone exceeded the budget and was cut to it.
    """

    passage: Passage
    rank: int
    tier: Tier
    score: float
    tokens: int
    keyword_rank: int | None = None
    keyword_score: float | None = None
    vector_rank: int | None = None
    vector_score: float | None = None
    fused_score: float | None = None
    rerank_score: float | None = None
    is_truncated: bool = False


@dataclass(frozen=True, slots=True)
class StageEntry:
    """What one stage did to one candidate: its rank and score there, or why it was dropped."""

    passage_id: int
    rank: int | None = None
    score: float | None = None
    dropped: str = ""


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage: the lists ``recent``, ``vector`` and ``keyword`` (with ``embed`` and ``match``
    between them), then ``fuse``, ``conversation``, ``dates``, ``priors``, ``collapse``, ``floor``,
    ``rerank``, ``limit``, ``budget``."""

    name: str
    took_ms: float
    entries: tuple[StageEntry, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Trace:
    """What each stage did to each candidate, in order of the stages."""

    terms: tuple[str, ...]
    stages: tuple[Stage, ...]


@dataclass(frozen=True, slots=True)
class Retrieval:
    """The account of one retrieval: hits in order, what ran, what did not and why."""

    query: Query
    hits: tuple[Hit, ...]
    tier: Tier
    total_tokens: int
    degraded: tuple[Degraded, ...] = ()
    embedding_source: str | None = None
    embedding_model: str | None = None
    vector_store: str | None = None
    fusion: Fusion | None = None
    reranker: str | None = None
    nearest: tuple[Hit, ...] = ()
    """Filled when nothing reached the relevance floor: what came closest to it."""
    took_ms: float = 0.0
    stage_ms: tuple[tuple[str, float], ...] = ()
    """Each stage in the order of running, with its milliseconds."""
    trace: Trace | None = None
