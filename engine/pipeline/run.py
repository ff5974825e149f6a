"""What a retrieval may use, and the state of one while its stages work."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from engine.protocols import EmbeddingSource, KeywordIndex, PassageSource, Reranker, VectorStore
from engine.rank.priors import Priors
from engine.text.language import language_of
from engine.types import Candidate, Degraded, Fusion, Query, Scope, Stage, StageEntry

DEPTH = 100
"""How many candidates each list may bring to the fusion (both seeds)."""


@dataclass(frozen=True, slots=True)
class FusionRule:
    """How lists become one. ``rrf`` weighs ranks; ``scores`` are weighed as configured.

    Weights of keyword and vector list count for both rules. The score rule gives words a little
    more than meaning: on every development set 0.6 is at least as good as 0.5
    (docs/benchmarks.md).
    """

    kind: Fusion = Fusion.SCORES
    rrf_k: int = 60
    keyword: float | None = None
    vector: float | None = None

    @property
    def weights(self) -> tuple[float, float]:
        """Weights of the keyword and of the vector list; the rule's own where both are 0, since
        then nothing could be ordered."""
        own = (0.6, 0.4) if self.kind is Fusion.SCORES else (1.0, 1.0)
        keyword = own[0] if self.keyword is None else self.keyword
        vector = own[1] if self.vector is None else self.vector
        return (keyword, vector) if keyword > 0 or vector > 0 else own


@dataclass(frozen=True, slots=True)
class Tiers:
    """What a retrieval may use. A missing vector half says why in ``vector_off``.

    ``fallback_stores`` are asked one after the other when ``store`` cannot answer.
    ``languages`` are those the embedding model knows (None: all); ``floor`` is the cosine below
    which nothing is relevant; ``has_conversations`` lets turns around a good turn count.
    """

    keyword: KeywordIndex
    passages: PassageSource
    source: EmbeddingSource | None = None
    store: VectorStore | None = None
    fallback_stores: tuple[VectorStore, ...] = ()
    vector_off: Degraded | None = None
    notes: tuple[Degraded, ...] = ()
    fusion: FusionRule = FusionRule()
    depth: int = DEPTH
    languages: frozenset[str] | None = None
    has_conversations: bool = True
    priors: Priors = field(default_factory=Priors)
    floor: float | None = None
    reranker: Reranker | None = None
    rerank_off: Degraded | None = None


@dataclass
class Run:
    """The state of one retrieval."""

    query: Query
    scope: Scope
    tiers: Tiers
    stages: list[Stage] = field(default_factory=list)
    degraded: list[Degraded] = field(default_factory=list)
    keyword: dict[int, Candidate] = field(default_factory=dict)
    vector: dict[int, Candidate] = field(default_factory=dict)
    used_vector: bool = False
    vector_store: str | None = None
    is_fused: bool = False
    reranker: str | None = None
    started: float = field(default_factory=time.perf_counter)

    def __post_init__(self) -> None:
        self._mark = self.started

    @cached_property
    def language(self) -> str:
        """The language of the query."""
        return language_of(self.query.text)

    def stage(self, name: str, entries: Iterable[StageEntry], note: str = "") -> None:
        """Close a stage: everything since the last one took its time.

        ``entries`` are only looked at for a trace.
        """
        moment = time.perf_counter()
        took_ms, self._mark = (moment - self._mark) * 1000, moment
        kept = tuple(entries) if self.query.trace else ()
        self.stages.append(Stage(name, round(took_ms, 3), kept, note))

    @property
    def took_ms(self) -> float:
        """Milliseconds since the start."""
        return round((time.perf_counter() - self.started) * 1000, 3)


def ranked(ordered: Sequence[tuple[int, float]]) -> Iterator[StageEntry]:
    """Entries of a stage that put candidates in order."""
    return (StageEntry(key, rank, score) for rank, (key, score) in enumerate(ordered, start=1))
