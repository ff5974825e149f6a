"""Engine status: every tier says whether it serves, and health does the real thing."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, replace
from typing import Final

from django.db import transaction
from django.utils.translation import gettext as _

from engine.errors import EngineError
from engine.types import Degraded, Health, Mode
from memory import local_stores, provider_sources, readiness, rerankers, wiring
from memory.errors import ServiceError
from memory.models import Job, VectorIndex
from memory.principal import SYSTEM, Principal
from memory.services import access, embedding, memories, passages
from memory.services.degraded import explain, explain_health, store_note, store_off
from memory.services.drafts import MemoryDraft
from memory.services.embedding import Coverage
from memory.services.retrieval import LOADING_WAIT_S, RetrieveRequest, retrieve_here
from memory.services.status_order import fusion_state, rerank_state
from memory.services.status_qdrant import qdrant_state
from memory.services.status_types import Facts, State, TierState
from memory.services.vaults import spaces
from memory.stored_settings import Settings

HEALTH_KEY: Final = "__health_check__"
LARGE: Final = 50_000
"""Vectors from which an index is read in the background rather than for its status."""


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """Every tier, and how far vectors cover the memories."""

    keyword: TierState
    embedding: TierState
    vector_store: TierState
    fusion: TierState
    rerank: TierState
    qdrant: TierState
    coverage: Coverage
    source: str | None = None
    model: str | None = None
    dimensions: int | None = None
    rerank_provider: str | None = None
    rerank_model: str | None = None
    cache_hits: int = 0
    cache_misses: int = 0
    cache_size: int = 0

    @property
    def tiers(self) -> tuple[TierState, ...]:
        """The tiers in the order the studio shows them."""
        ordering = (self.fusion, self.rerank, self.qdrant)
        return (self.keyword, self.embedding, self.vector_store, *ordering)


@dataclass(frozen=True, slots=True)
class HealthResult:
    """Result of one round trip."""

    working: bool
    latency_ms: float
    error: str | None = None


def engine_status(principal: Principal) -> EngineStatus:
    """The state of every tier now; what is counted in it is only the caller's own for a key.

    The query cache is everybody's: its figures are for those who may name any owner.
    """
    access.require(principal, "read")
    resolved = wiring.resolve_source()
    sees_all = access.may_name_owners(principal)
    covered = coverage(principal)
    source = resolved.source
    index = embedding.active_index()
    stats = source.stats if source and sees_all else None
    chosen = wiring.settings()
    has_vectors = source is not None and index is not None
    qdrant = qdrant_state(chosen, index)
    ranking = provider_sources.ranking(chosen)
    return EngineStatus(
        keyword=_keyword(),
        embedding=_embedding(resolved),
        vector_store=_vector_store(index, covered, qdrant),
        fusion=fusion_state(chosen, has_vectors=has_vectors),
        rerank=rerank_state(chosen, _rerank_off(chosen, index)),
        qdrant=qdrant,
        coverage=covered,
        source=resolved.family if source else None,
        model=source.model if source else None,
        dimensions=index.dim if index else None,
        rerank_provider=ranking[0] if ranking else None,
        rerank_model=ranking[1] if ranking else chosen.rerank_provider_model,
        cache_hits=stats.hits if stats else 0,
        cache_misses=stats.misses if stats else 0,
        cache_size=stats.size if stats else 0,
    )


def qdrant_tier(principal: Principal) -> TierState:
    """The state of Qdrant alone."""
    access.require(principal, "read")
    return qdrant_state(wiring.settings(), embedding.active_index())


def _rerank_off(chosen: Settings, index: VectorIndex | None) -> Degraded | None:
    """Why the chosen reranker cannot run, or what it failed over last; nothing is asked for it."""
    source = wiring.source_for(index, chosen) if index else None
    off = rerankers.chosen_reranker(chosen, source, wiring.http_client)[1]
    return off or rerankers.last_failure(chosen)


def coverage(principal: Principal) -> Coverage:
    """How far vectors cover the memories; of a key only its own."""
    access.require(principal, "read")
    return embedding.coverage(None if access.may_name_owners(principal) else principal.owner)


def _keyword() -> TierState:
    index = wiring.keyword_index()
    health = index.health()
    state: State = "on" if health.available else "error"
    short, label = _keyword_names(str(health.detail["index"]))
    facts = [
        (_("Index"), label),
        (_("Ranking"), "BM25 5 / 1 / 2"),
        (_("Passages"), f"{index.count() if health.available else 0:,}"),
    ]
    in_memory = health.detail.get("passages_in_memory")
    if isinstance(in_memory, int):
        facts.append((_("In memory"), f"{in_memory:,}"))
    reason = explain_health(health)
    if health.detail.get("building"):
        # Nothing is slower for long, and nothing is missing: the database answers meanwhile.
        reason = reason or _("A part is being read into memory; the database answers meanwhile.")
    return TierState("keyword", state, short, reason, tuple(facts))


def _keyword_names(index: str) -> tuple[str, str]:
    """Short and long name of a durable keyword index."""
    if index == "fts5":
        return "FTS5", "SQLite FTS5"
    return "Postgres", "Postgres BM25" if index == "postgres" else "Postgres BM25, pg_textsearch"


def _embedding(resolved: wiring.Resolved) -> TierState:
    source = resolved.source
    if source is None:
        off = resolved.off or Degraded("vector", "off", "")
        return TierState("embedding", "off", resolved.family, explain(off), code=off.code)
    facts = [(_("Source"), source.name), (_("Model"), source.model)]
    if not source.is_loaded:
        # Asking its health would load it: seconds that a status page must not take.
        reason = _("The model loads when it is first needed.")
        return TierState("embedding", "on", source.model, reason, tuple(facts), "lazy")
    health = source.health()
    try:
        facts.append((_("Dimensions"), str(source.signature.dim)))
    except EngineError as error:
        reason = explain(Degraded("vector", error.code, str(error)))
        return TierState("embedding", "error", source.model, reason, tuple(facts), error.code)
    stats = source.stats
    facts.append((_("Query cache"), f"{stats.hits} / {stats.hits + stats.misses}"))
    state: State = "on" if health.available else "error"
    return TierState("embedding", state, source.model, explain_health(health), tuple(facts))


def _vector_store(index: VectorIndex | None, covered: Coverage, qdrant: TierState) -> TierState:
    if index is None:
        reason = _("No memory has a vector yet.")
        return TierState("vectorStore", "off", "in-process", reason, code="empty")
    if qdrant.latency_ms is not None:
        # It answered a search just now; the index here is not even read into memory for that.
        return _serving(
            TierState("vectorStore", "on", "qdrant", "", _facts("qdrant", index, covered)), covered
        )
    store = wiring.store_for(index)
    facts = _facts(store.name, index, covered)
    if covered.indexed >= LARGE and not readiness.is_store_ready(store, wait_s=LOADING_WAIT_S):
        # A status page must not take the seconds that a large index does.
        reason = _("The index is being read into memory; until then searches wait for it.")
        return TierState("vectorStore", "warn", store.name, reason, facts, "loading")
    health = store.health()
    if not health.available:
        return TierState("vectorStore", "error", store.name, explain_health(health), facts)
    chosen = wiring.settings().vector_store
    if qdrant.state in ("warn", "error") and chosen == "qdrant":
        return TierState("vectorStore", "warn", store.name, qdrant.reason, facts, "fallback")
    if chosen not in ("auto", store.name):
        reason = store_off(chosen, local_stores.availability(wiring.connect))
        return TierState("vectorStore", "warn", store.name, reason, facts, "fallback")
    if _are_lost(index, health):
        reason = _("Vectors are lost; “Reindex everything” makes them again.")
        return TierState("vectorStore", "warn", store.name, reason, facts, "lost")
    return _serving(TierState("vectorStore", "on", store.name, store_note(health), facts), covered)


def _facts(name: str, index: VectorIndex, covered: Coverage) -> Facts:
    return (
        (_("Store"), name),
        (_("Vectors"), f"{covered.indexed:,}"),
        (_("Signature"), index.signature),
    )


def _serving(state: TierState, covered: Coverage) -> TierState:
    """The state of a store that serves, and how many passages it does not know yet."""
    if not covered.pending:
        return state
    reason = _("%(count)s passages wait for a vector.") % {"count": covered.pending}
    reason = f"{reason} {_last_failure()}".strip()
    return replace(state, state="warn", reason=reason, code="partial")


def _are_lost(index: VectorIndex, health: Health) -> bool:
    """Whether a search can read fewer vectors than there must be."""
    rows = health.detail.get("rows")
    # In this order: a passage that is embedded meanwhile counts twice rather than not at all.
    return isinstance(rows, int) and rows + index.marks.count() < spaces.count(index)


def _last_failure() -> str:
    job = Job.objects.filter(dedupe_key=embedding.DEDUPE).first()
    if job is None or job.state != Job.State.FAILED:
        return ""
    return explain(Degraded("vector", job.error_code, job.message or job.error_code))


def health(principal: Principal) -> HealthResult:
    """Write a memory of the default key, find it by its own word, erase it."""
    access.require(principal, "read")
    started = time.perf_counter()
    error = _round_trip()
    return HealthResult(not error, round((time.perf_counter() - started) * 1000, 1), error or None)


def _round_trip() -> str:
    word = f"healthcheck{uuid.uuid4().hex}"
    try:
        # One transaction: a crash in the middle leaves nothing behind.
        with transaction.atomic():
            owner = access.default_key()
            draft = MemoryDraft(content=word, key=f"{HEALTH_KEY}{word}")
            memory = memories.store_many(SYSTEM, owner, [draft], embed=False)[0].memory
            wanted = RetrieveRequest(word, mode=Mode.KEYWORD, owner=str(owner.uid))
            found = str(memory.pk) in retrieve_here(SYSTEM, wanted).memories
            passages.remove([memory])
            memory.delete()
    except (ServiceError, EngineError) as error:
        return str(error)
    except Exception as error:  # whatever is broken: that is what health tells
        return type(error).__name__
    return "" if found else _("The memory was written but not found.")
