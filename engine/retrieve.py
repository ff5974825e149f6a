"""The one retrieval of the product: chat, preview and evaluation all call ``retrieve``.

Lists bring candidates, fusion and what surrounds them order them, and what is left after floor,
reranker, limit and budget comes back with an account of every stage (``engine.pipeline``).
"""

from __future__ import annotations

from engine.pipeline import hits as stages
from engine.pipeline import lists, order
from engine.pipeline.run import DEPTH, FusionRule, Run, Tiers
from engine.types import Fusion, Hit, Mode, Query, Retrieval, Scope, Tier, Trace

__all__ = ["DEPTH", "FusionRule", "Tiers", "retrieve"]


def retrieve(query: Query, scope: Scope, tiers: Tiers) -> Retrieval:
    """Find the passages of a scope that answer a query, best first, within the budget.

    A tier that fails or is off is left out and named in ``degraded``; a query without any word
    finds nothing. Never raises for what a person types.
    """
    run = Run(query, scope, tiers)
    tier, ordered = _ordered(run)
    found, nearest = stages.above_floor(run, stages.collapsed(run, tier, ordered))
    kept = stages.within_budget(run, stages.limited(run, stages.reranked(run, found)))
    return _account(run, tier, kept, nearest)


def _ordered(run: Run) -> tuple[Tier, list[tuple[int, float]]]:
    """Run the lists the mode asks for; fall back from vectors to keywords when they are off."""
    mode = run.query.mode
    if mode is Mode.RECENT or not run.query.text.strip():
        return Tier.RECENT, lists.recent(run)
    if mode is not Mode.VECTOR:
        # First of the two: meanwhile the query may be on its way to being embedded.
        lists.search_keywords(run)
    has_vectors = mode in (Mode.VECTOR, Mode.HYBRID) and lists.search_vectors(run)
    if mode is Mode.VECTOR:
        if has_vectors:
            return Tier.VECTOR, [(c.passage_id, c.score) for c in run.vector.values()]
        lists.search_keywords(run)
    if mode is Mode.HYBRID and (has_vectors or run.tiers.fusion.kind is Fusion.SCORES):
        return Tier.HYBRID if has_vectors else Tier.KEYWORD, order.fused(run)
    return Tier.KEYWORD, [(c.passage_id, c.score) for c in run.keyword.values()]


def _account(run: Run, tier: Tier, kept: list[Hit], nearest: list[Hit]) -> Retrieval:
    query, tiers = run.query, run.tiers
    trace = None
    if query.trace:
        terms = tiers.keyword.terms(query.text) if query.text.strip() else ()
        trace = Trace(terms, tuple(run.stages))
    source = tiers.source if run.used_vector else None
    return Retrieval(
        query=query,
        hits=tuple(kept),
        tier=tier,
        total_tokens=sum(hit.tokens for hit in kept),
        degraded=tuple(run.degraded),
        embedding_source=source.name if source else None,
        embedding_model=source.model if source else None,
        vector_store=run.vector_store,
        fusion=tiers.fusion.kind if tier is Tier.HYBRID else None,
        reranker=run.reranker,
        nearest=tuple(nearest),
        took_ms=run.took_ms,
        stage_ms=tuple((stage.name, stage.took_ms) for stage in run.stages),
        trace=trace,
    )
