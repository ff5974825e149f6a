"""Qdrant as managers see it: a real test of the connection, a search, a clean-up, its state."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from engine.errors import EngineError, InvalidQuery
from engine.keyword.limits import check_query
from engine.text.language import language_of
from engine.types import Degraded, Match, Mode, Purpose
from memory import qdrant_store, wiring
from memory.clock import now, to_ms
from memory.errors import from_engine
from memory.models import Job, Memory, VectorIndex
from memory.passage_reader import PassageReader
from memory.principal import Principal
from memory.services import access, audit, embedding, lifetimes
from memory.services.degraded import explain
from memory.services.mirror_soon import BACKFILL
from memory.stored_settings import Settings

NOT_CONFIGURED: Final = "not_configured"
NOT_ENABLED: Final = "not_enabled"
SPARE: Final = 3
"""Passages asked for each memory: several may be of the same one."""


@dataclass(frozen=True, slots=True)
class Tried:
    """How a call of Qdrant went: ``error`` is a code, ``message`` for people."""

    ok: bool
    latency_ms: float
    error: str | None = None
    message: str | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class QdrantHit:
    """A memory that Qdrant found, with the cosine of its best passage."""

    memory: Memory
    score: float


@dataclass(frozen=True, slots=True)
class Searched:
    """A search test and its hits, best first."""

    tried: Tried
    hits: tuple[QdrantHit, ...] = ()


@dataclass(frozen=True, slots=True)
class Cleaned:
    """A clean-up: how many points of expired memories, and of memories that are no more."""

    tried: Tried
    expired: int = 0
    strays: int = 0

    @property
    def deleted(self) -> int:
        """All points that were removed."""
        return self.expired + self.strays


def health(principal: Principal) -> Tried:
    """Search Qdrant and say how long that took: the live collection, or one made for the test."""
    access.require(principal, "manage")
    return probe(wiring.settings())


def probe(chosen: Settings) -> Tried:
    """The same for settings that need not be on."""
    begun = time.perf_counter()
    detail: dict[str, Any] = {}
    try:
        if chosen.qdrant_host:
            from engine.qdrant.server import load

            # Loading the client is nothing that the server takes its time for.
            load()
            begun = time.perf_counter()
        detail = _probe(chosen)
    except EngineError as error:
        return _failed(error, begun)
    return Tried(True, _since(begun), detail=detail)


def _probe(chosen: Settings) -> dict[str, Any]:
    if not chosen.qdrant_host:
        raise EngineError(code=NOT_CONFIGURED)
    held, index = qdrant_store.connection(chosen), embedding.active_index()
    live = qdrant_store.mirror(index, chosen).live() if index else None
    if index is None or live is None:
        held.guard.note(held.server.try_out)
        return {"collection": None, "points": 0}
    found = qdrant_store.store(index, chosen).health()
    if not found.available:
        raise EngineError(found.reason, code=str(found.detail.get("code", "qdrant_error")))
    return dict(found.detail)


def search(principal: Principal, query: str, top_k: int) -> Searched:
    """Ask Qdrant alone, over the memories of every owner. Raises ``Invalid`` for a bad query."""
    access.require(principal, "manage")
    try:
        check_query(query, limit=top_k, mode=Mode.VECTOR, match=Match.ANY)
    except InvalidQuery as error:
        raise from_engine(error) from None
    begun = time.perf_counter()
    try:
        hits = _search(wiring.settings(), query.strip(), top_k)
    except EngineError as error:
        return Searched(_failed(error, begun))
    tried = Tried(True, _since(begun))
    if hits:
        ids = [str(hit.memory.pk) for hit in hits]
        audit.record(principal, "qdrant.search", ids=ids, duration_ms=tried.latency_ms)
    return Searched(tried, hits)


def _search(chosen: Settings, query: str, top_k: int) -> tuple[QdrantHit, ...]:
    index = _index_in_use(chosen)
    source = wiring.source_for(index, chosen)
    if source is None:
        raise EngineError(code="building")
    (vector,) = source.embed([query], purpose=Purpose.QUERY)
    found = qdrant_store.store(index, chosen).search(
        vector,
        scope=lifetimes.scope(None, view=lifetimes.View()),
        limit=top_k * SPARE,
        language=language_of(query),
    )
    reader = PassageReader()
    passages = reader.load([candidate.passage_id for candidate in found])
    hits: dict[str, QdrantHit] = {}
    for candidate in found:
        passage = passages.get(candidate.passage_id)
        if passage is not None:
            memory = reader.memories[passage.parent]
            hits.setdefault(passage.parent, QdrantHit(memory, candidate.score))
    return tuple(hits.values())[:top_k]


def clean_up(principal: Principal) -> Cleaned:
    """Remove points of expired memories and of memories that are no more.

    What retention hides keeps its points: a longer retention shows it again.
    """
    access.require(principal, "manage")
    begun = time.perf_counter()
    try:
        expired, strays = _clean_up(wiring.settings())
    except EngineError as error:
        return Cleaned(_failed(error, begun))
    done = Cleaned(Tried(True, _since(begun)), expired, strays)
    detail = {"expired": expired, "strays": strays}
    audit.record(principal, "qdrant.cleanup", duration_ms=done.tried.latency_ms, detail=detail)
    return done


def _clean_up(chosen: Settings) -> tuple[int, int]:
    from engine.qdrant.errors import QdrantFailed
    from engine.qdrant.filters import expired

    index = _index_in_use(chosen)
    held, mirror = qdrant_store.connection(chosen), qdrant_store.mirror(index, chosen)
    live = mirror.live()
    if live is None:
        raise QdrantFailed(code="qdrant_building")
    chosen_points = expired(to_ms(now()))
    lapsed = held.guard.note(lambda: held.server.delete_where(live.name, chosen_points))
    return lapsed, held.guard.note(lambda: mirror.remove_strays(live.name))


def _index_in_use(chosen: Settings) -> VectorIndex:
    """The live index while Qdrant is on. Raises ``EngineError``."""
    if not chosen.qdrant_host:
        raise EngineError(code=NOT_CONFIGURED)
    if not qdrant_store.is_on(chosen):
        raise EngineError(code=NOT_ENABLED)
    index = embedding.active_index()
    if index is None:
        raise EngineError(code="empty")
    return index


def model_note(chosen: Settings, index: VectorIndex | None) -> str:
    """The model whose vectors are in Qdrant, where the settings name another one; else empty."""
    if index is None:
        return ""
    held = f"{index.source}/{index.model}"
    return "" if chosen.qdrant_embedding_model in (held, index.model) else held


def building() -> Job | None:
    """The build that runs or waits."""
    return Job.objects.filter(kind=BACKFILL, state__in=Job.ACTIVE).first()


def _failed(error: EngineError, begun: float) -> Tried:
    message = explain(Degraded("vectorStore", error.code, str(error)))
    return Tried(False, _since(begun), error.code, message)


def _since(begun: float) -> float:
    return round((time.perf_counter() - begun) * 1000, 1)
