"""The one retrieval: preview, clients and evaluation all come through ``retrieve``."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from django.conf import settings as django_settings
from django.db import IntegrityError, connection, transaction
from django.db.models import F
from django.utils.translation import gettext as _

from engine import spans
from engine.embed.catalogue import ModelEntry
from engine.errors import InvalidQuery
from engine.keyword.limits import check_query
from engine.rank.priors import Priors
from engine.retrieve import FusionRule, Tiers
from engine.retrieve import retrieve as run
from engine.types import Degraded, Fusion, Hit, Match, MemoryType, Mode, Query, Retrieval, Scope
from memory import measured, readiness, rerankers, wiring
from memory.clock import now
from memory.errors import Invalid, from_engine
from memory.model_facts import entry_of
from memory.models import ApiKey, Memory, MemoryUse, RetrievalCount, VectorIndex
from memory.passage_reader import PassageReader
from memory.principal import Principal
from memory.services import access, audit, embedding, lifetimes
from memory.services.backends import truth
from memory.services.drafts import is_storable
from memory.services.metadata_filters import Filters
from memory.stored_settings import Settings

if TYPE_CHECKING:
    from engine.embed.cache import CachedSource
    from engine.protocols import VectorStore

BACKFILL_MS: Final = 60.0
LOADING_WAIT_S: Final = 0.03
"""A first search answers by words rather than wait seconds for a model."""

Purpose = Literal["preview", "client", "chat", "evaluate"]
Reach = Literal["session", "apiKey", "global"]


@dataclass(frozen=True, slots=True)
class RetrieveRequest:
    """One retrieval as asked. ``owner`` is a public id or name.

    ``reach`` ``global`` adds memories that a manager has marked shared; ``all_owners`` is for
    managers only.
    """

    query: str
    mode: Mode = Mode.HYBRID
    limit: int = 20
    max_tokens: int = 2000
    owner: str | None = None
    all_owners: bool = False
    session: str | None = None
    reach: Reach = "apiKey"
    types: tuple[MemoryType, ...] = ()
    match: Match = Match.ANY
    trace: bool = False
    filters: Filters | None = None
    """A filter over metadata (``metadata_filters``)."""
    with_expired: bool = False


@dataclass(frozen=True, slots=True)
class Known:
    """What a caller has read for this very retrieval: its settings, and the key that asks."""

    settings: Settings
    key: ApiKey


@dataclass(frozen=True, slots=True)
class RetrievalView:
    """A retrieval with the memories its hits belong to, by id.

    ``nearest`` are those of what came closest when nothing reached the relevance floor, which is
    ``floor``: a cosine, None where there is none.
    """

    retrieval: Retrieval
    memories: Mapping[str, Memory] = field(default_factory=dict)
    nearest: Mapping[str, Memory] = field(default_factory=dict)
    floor: float | None = None

    @property
    def empty_reason(self) -> str:
        """Why there is no hit: ``no_budget``, ``below_floor`` or ``none``; empty with a hit."""
        if self.retrieval.hits:
            return ""
        if self.retrieval.query.max_tokens <= 0:
            return "no_budget"
        return "below_floor" if self.retrieval.nearest else "none"


def retrieve(
    principal: Principal,
    request: RetrieveRequest,
    *,
    purpose: Purpose = "preview",
    known: Known | None = None,
) -> RetrievalView:
    """Find what a request asks for.

    Raises ``Invalid`` for a query over the limits. A preview changes nothing; retrievals for a
    client count uses; one for a chat leaves counting to ``account``, which waits until the chat
    is over. Evaluation runs without retention. A primary backend elsewhere may search by itself;
    whatever it does not answer, its mirror here does.
    """
    named = {"retrieval.mode": request.mode.value, "retrieval.purpose": purpose}
    with spans.span("retrieve", attributes=named) as span:
        if truth.is_elsewhere() and purpose != "evaluate":
            from memory.services.backends import searching

            view = searching.retrieve(principal, request, purpose)
        else:
            view = retrieve_here(principal, request, purpose=purpose, known=known)
        span.set("retrieval.tier", view.retrieval.tier.value)
        span.set("retrieval.hits", len(view.retrieval.hits))
    return view


def retrieve_here(
    principal: Principal,
    request: RetrieveRequest,
    *,
    purpose: Purpose = "preview",
    known: Known | None = None,
) -> RetrievalView:
    """The same from what our own tables hold, whoever is primary."""
    access.require(principal, "read")
    started = time.perf_counter()
    owners = owners_of(principal, request, known)
    check(request)
    serving = serving_now(known.settings if known else None)
    scope = scope_of(request, owners, serving.chosen, with_retention=purpose != "evaluate")
    uses_vectors = request.mode in (Mode.VECTOR, Mode.HYBRID)
    if uses_vectors and serving.index and serving.source and serving.can_backfill:
        embedding.backfill(scope, serving.index, serving.source, budget_ms=BACKFILL_MS)
    reader = PassageReader(wiring.passages_read, keys=owners or ())
    wait_s = None if purpose == "evaluate" else LOADING_WAIT_S * uses_vectors
    used = tiers(reader, wait_s=wait_s, serving=serving)
    retrieval = run(query_of(request), scope, used)
    _trace(retrieval)
    rerankers.remember(serving.chosen, retrieval)
    view = RetrievalView(
        retrieval,
        _memories(reader, retrieval.hits),
        _memories(reader, retrieval.nearest),
        used.floor,
    )
    account(principal, view, purpose, owners, took_ms=(time.perf_counter() - started) * 1000)
    return view


def account(
    principal: Principal,
    view: RetrievalView,
    purpose: Purpose,
    owners: list[ApiKey] | None,
    *,
    took_ms: float,
) -> None:
    """Count uses and answers of a retrieval that was carried out, and leave its audit row."""
    _measure(view.retrieval, took_ms)
    if purpose == "chat":
        return
    if purpose == "client":
        _count_uses(view.memories)
    if purpose == "evaluate" or principal.kind == "system":
        return
    owner = owners[0] if owners is not None else None
    if principal.kind == "key" and owner is not None and view.retrieval.query.text:
        _count_answer(owner, answered=bool(view.memories))
    if view.memories:
        action = f"retrieve.{purpose}"
        audit.record(principal, action, owner=owner, ids=view.memories, duration_ms=took_ms)


def _trace(retrieval: Retrieval) -> None:
    """The stages of a retrieval that has just ended, as spans."""
    if not spans.is_on():
        return
    mark = time.time_ns() - int(retrieval.took_ms * 1e6)
    for name, stage_ms in retrieval.stage_ms:
        ended = mark + int(stage_ms * 1e6)
        spans.past(f"retrieve.{name}", mark, ended)
        mark = ended


def _measure(retrieval: Retrieval, took_ms: float) -> None:
    """Count and time a retrieval and its stages in this process."""
    tier = retrieval.tier.value
    measured.RETRIEVALS.add(tier, "hits" if retrieval.hits else "empty")
    measured.RETRIEVAL_TIME.add(tier, seconds=took_ms / 1000)
    for name, stage_ms in retrieval.stage_ms:
        measured.STAGE_TIME.add(name, seconds=stage_ms / 1000)
    for missing in retrieval.degraded:
        measured.DEGRADED.add(missing.tier, missing.code)


def _memories(reader: PassageReader, hits: Iterable[Hit]) -> dict[str, Memory]:
    return {hit.passage.parent: reader.memories[hit.passage.parent] for hit in hits}


def scope_of(
    request: RetrieveRequest,
    owners: list[ApiKey] | None,
    settings: Settings | None = None,
    *,
    with_retention: bool = True,
) -> Scope:
    """What a request may see of its owners now."""
    view = lifetimes.View(
        session=request.session or None,
        types=request.types,
        include_shared=request.reach == "global",
        with_retention=with_retention,
        with_expired=request.with_expired,
        filters=request.filters,
    )
    return lifetimes.scope(owners, view=view, settings=settings)


def query_of(request: RetrieveRequest) -> Query:
    """A request as the engine is asked it."""
    return Query(
        text=request.query.strip(),
        mode=request.mode,
        match=request.match,
        limit=request.limit,
        max_tokens=request.max_tokens,
        trace=request.trace,
    )


@dataclass(frozen=True, slots=True)
class Serving:
    """The settings, the live vector index and the source that embeds for it, read once."""

    chosen: Settings
    resolved: wiring.Resolved
    index: VectorIndex | None
    source: CachedSource | None
    has_marks: bool

    @property
    def can_backfill(self) -> bool:
        """Whether passages wait for a vector that could be made now."""
        return self.has_marks and self.source is not None and self.source.is_loaded


def serving_now(settings: Settings | None = None) -> Serving:
    """What serves at this moment; the settings are read unless they were already."""
    chosen = settings or wiring.settings()
    index = embedding.active_index()
    source = wiring.source_for(index, chosen) if index else None
    has_marks = index is not None and index.marks.exists()
    return Serving(chosen, wiring.resolve_source(chosen), index, source, has_marks)


def tiers(
    reader: PassageReader, *, wait_s: float | None = None, serving: Serving | None = None
) -> Tiers:
    """What a retrieval may use now, and why the vector half is missing when it is.

    ``wait_s`` bounds the wait for a model that is being loaded; None waits to the end.
    """
    serving = serving or serving_now()
    chosen, index, source = serving.chosen, serving.index, serving.source
    off = _why_off(serving.resolved, has_index=index is not None) if source is None else None
    if source and wait_s is not None and not readiness.is_ready(source, wait_s=wait_s):
        source, off = None, Degraded("vector", "loading", "the model is still being loaded")
    reranker, rerank_off = rerankers.chosen_reranker(chosen, source, wiring.http_client)
    entry = entry_of(index) if index and source else None
    stores, waits = _stores(index, chosen, wait_s) if index and source else ((None,), ())
    return Tiers(
        keyword=wiring.keyword_index(),
        passages=reader,
        source=source,
        store=stores[0],
        fallback_stores=stores[1:],
        vector_off=off,
        notes=(*waits, *(_notes(index) if serving.has_marks else ())),
        fusion=_fusion(chosen),
        languages=entry.scripts if entry else None,
        floor=_floor(chosen, entry),
        reranker=reranker,
        rerank_off=rerank_off,
        priors=Priors(chosen.recency_weight, chosen.use_weight),
        depth=django_settings.MEMORY_VEC_TOP_K,
    )


def _stores(
    index: VectorIndex, chosen: Settings, wait_s: float | None
) -> tuple[tuple[VectorStore, ...], tuple[Degraded, ...]]:
    """The stores to ask in order, without the first while what it needs is being loaded."""
    first, *others = wiring.search_stores(index, chosen)
    if not others or wait_s is None or readiness.is_store_ready(first, wait_s=wait_s):
        return (first, *others), ()
    return tuple(others), (Degraded("vectorStore", "qdrant_loading", "Qdrant is being connected"),)


def _fusion(chosen: Settings) -> FusionRule:
    weights = chosen.fusion_weights
    return FusionRule(
        Fusion(chosen.fusion),
        rrf_k=django_settings.MEMORY_RRF_K,
        keyword=weights.get("keyword"),
        vector=weights.get("vector"),
    )


def _floor(chosen: Settings, entry: ModelEntry | None) -> float | None:
    """The cosine below which nothing is relevant: as set, or as measured for the model."""
    if isinstance(chosen.relevance_floor, float):
        return chosen.relevance_floor
    return entry.floor if entry is not None and chosen.relevance_floor == "auto" else None


def _why_off(resolved: wiring.Resolved, *, has_index: bool) -> Degraded:
    if resolved.off is not None:
        return resolved.off
    if has_index:
        return Degraded("vector", "building", "the index of the chosen model is being built")
    return Degraded("vector", "empty", "no memory has a vector yet")


def _notes(index: VectorIndex | None) -> tuple[Degraded, ...]:
    # Asked again: the search may have embedded the last ones itself.
    if index is None or not index.marks.exists():
        return ()
    state = embedding.coverage()
    message = f"{state.indexed} of {state.passages} passages have a vector yet"
    return (Degraded("vector", "partial", message),)


def owners_of(
    principal: Principal, request: RetrieveRequest, known: Known | None = None
) -> list[ApiKey] | None:
    """Whose memories a request searches; None for those of every owner."""
    if known and access.is_limited_to(principal, known.key):
        return [known.key]
    if request.all_owners and access.may_name_owners(principal):
        return None
    owner = access.read_owner(principal, request.owner)
    # Without a name the studio simulates the default key, as a client of it would see.
    return [owner or access.default_key()]


def check(request: RetrieveRequest) -> None:
    """Raise ``Invalid`` for a query over the limits."""
    if request.mode is Mode.RECENT:
        return
    if not is_storable(request.query):
        message = _("This holds characters that are not valid text.")
        raise Invalid(message, fields={"query": message})
    try:
        check_query(request.query, limit=request.limit, mode=request.mode, match=request.match)
    except InvalidQuery as error:
        # A query without a word finds nothing; that is an answer, not an error.
        if error.code != "empty_query":
            raise from_engine(error) from None


def _count_uses(memories: Mapping[str, Memory]) -> None:
    """Count uses in rows of their own, so that no index is rewritten."""
    rows = MemoryUse.objects.filter(memory__in=list(memories))
    # A memory that is erased at this moment makes the whole fail; its uses do not matter then.
    with suppress(IntegrityError), transaction.atomic():
        MemoryUse.objects.bulk_create(
            [MemoryUse(memory_id=key) for key in sorted(memories)], ignore_conflicts=True
        )
        if connection.features.has_select_for_update:
            # In one order: two searches with the same hits must not wait for each other.
            list(rows.select_for_update().order_by("pk").values_list("pk"))
        rows.update(access_count=F("access_count") + 1, last_accessed_at=now())


def _count_answer(owner: ApiKey, *, answered: bool) -> None:
    """Count one retrieval with a query for the hit rate of an owner."""
    row, _created = RetrievalCount.objects.get_or_create(owner=owner, day=now().date())
    RetrievalCount.objects.filter(pk=row.pk).update(
        queries=F("queries") + 1, answered=F("answered") + int(answered)
    )
