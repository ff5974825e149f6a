"""Searches that a primary backend answers by itself (first seed: its answer is final, even empty).

A backend whose own search is weak (Obsidian, Notion) leaves searching to the mirror, which has
every tier; ``answers`` in its configuration chooses.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from engine.backends.manager import Answered
from engine.rank.budget import fit
from engine.records import Search
from engine.types import (
    Degraded,
    Hit,
    Mode,
    Passage,
    Retrieval,
    Scope,
    Stage,
    StageEntry,
    Tier,
    Trace,
)
from memory import backend_wiring
from memory.models import ApiKey
from memory.passage_reader import PassageReader
from memory.principal import Principal
from memory.services import access, retrieval
from memory.services.backends import mirror
from memory.services.backends.manage import manager
from memory.services.retrieval import Purpose, RetrievalView, RetrieveRequest

STRATEGIES = {Mode.KEYWORD: "exact", Mode.VECTOR: "semantic", Mode.HYBRID: "hybrid"}


def retrieve(principal: Principal, request: RetrieveRequest, purpose: Purpose) -> RetrievalView:
    """Ask the primary, then the fallbacks when it fails, then the mirror when all do."""
    access.require(principal, "read")
    started = time.perf_counter()
    owners = retrieval.owners_of(principal, request)
    retrieval.check(request)
    plan = backend_wiring.plan()
    by_itself = plan.configs[plan.primary].answers == "backend"
    # No backend knows filters over metadata: the mirror has every metadata.
    is_ours = request.mode is Mode.RECENT or not request.query.strip() or bool(request.filters)
    if is_ours or not by_itself:
        return retrieval.retrieve_here(principal, request, purpose=purpose)
    answered = manager().search(_asked(request, owners))
    failed = tuple(Degraded("backend", error.code, str(error)) for _name, error in answered.failed)
    if answered.backend in (None, backend_wiring.LOCAL):
        view = retrieval.retrieve_here(principal, request, purpose=purpose)
        degraded = (*failed, *view.retrieval.degraded)
        return replace(view, retrieval=replace(view.retrieval, degraded=degraded))
    view = _view(request, retrieval.scope_of(request, owners), answered)
    took_ms = (time.perf_counter() - started) * 1000
    found = replace(view.retrieval, degraded=failed, took_ms=took_ms)
    view = replace(view, retrieval=found)
    retrieval.account(principal, view, purpose, owners, took_ms=took_ms)
    return view


def _asked(request: RetrieveRequest, owners: list[ApiKey] | None) -> Search:
    return Search(
        query=request.query.strip(),
        owner=str(owners[0].uid) if owners else "",
        type=request.types[0].value if len(request.types) == 1 else "",
        session=request.session or "",
        limit=request.limit,
        strategy=STRATEGIES[request.mode],
        max_tokens=request.max_tokens,
    )


def _view(request: RetrieveRequest, scope: Scope, answered: Answered) -> RetrievalView:
    """The records as hits: of the caller's scope only, within the budget."""
    shown = mirror.apply(str(answered.backend), answered.records)
    reader = PassageReader()
    firsts = reader.firsts([str(item.memory.pk) for item in shown], scope)
    passages = reader.load(list(firsts.values()))
    scores = {str(item.memory.pk): item.record.score for item in shown}
    found = [passages[firsts[key]] for key in scores if firsts.get(key) in passages]
    hits = _within_budget(found, scores, request.max_tokens)
    listed = [
        StageEntry(passage.id, rank, scores[passage.parent])
        for rank, passage in enumerate(found, start=1)
    ]
    trace = Trace((), (Stage("backend", 0.0, tuple(listed), str(answered.backend)),))
    answer = Retrieval(
        query=retrieval.query_of(request),
        hits=tuple(hits),
        tier=Tier.BACKEND,
        total_tokens=sum(hit.tokens for hit in hits),
        trace=trace if request.trace else None,
    )
    return RetrievalView(
        answer, {hit.passage.parent: reader.memories[hit.passage.parent] for hit in hits}
    )


def _within_budget(
    found: Sequence[Passage], scores: Mapping[str, float | None], max_tokens: int
) -> list[Hit]:
    places = fit([passage.parent_tokens for passage in found], max_tokens)
    hits: list[Hit] = []
    for rank, place in enumerate(places, start=1):
        passage = found[place.index]
        score = scores[passage.parent]
        hits.append(
            Hit(
                passage=passage,
                rank=rank,
                tier=Tier.BACKEND,
                # A service that tells no scores has told an order.
                score=1.0 / (place.index + 1) if score is None else score,
                tokens=place.tokens,
                is_truncated=place.is_truncated,
            )
        )
    return hits
