"""Rows and engine values to the shapes of the API. The seeds' words are translated here."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from engine.text.tokens import cut_to_tokens
from engine.types import Hit, Tier, Trace
from memory.clock import iso
from memory.models import ApiKey, Job, Memory, MemoryRevision
from memory.services.degraded import explain
from memory.services.exchange import memory_json
from memory.services.listing import Stats
from memory.services.retrieval import RetrievalView

_STRATEGY_OF: Final = {
    Tier.KEYWORD: "exact",
    Tier.VECTOR: "semantic",
    Tier.HYBRID: "hybrid",
    Tier.RECENT: "recent",
    Tier.BACKEND: "backend",
}
_TIERS: Final = {
    Tier.KEYWORD: "fts5",
    Tier.VECTOR: "vector",
    Tier.HYBRID: "hybrid-rrf",
    Tier.RECENT: "recent",
    Tier.BACKEND: "backend",
}


def memory_out(memory: Memory) -> dict[str, Any]:
    """Fields of ``MemoryOut``."""
    return memory_json(memory)


def revision_out(row: MemoryRevision) -> dict[str, Any]:
    """Fields of ``RevisionOut``."""
    return {
        "revision": row.revision,
        "key": row.key,
        "type": row.type,
        "content": row.content,
        "metadata": row.metadata,
        "sessionId": row.session_id,
        "expiresAt": iso(row.expires_at),
        "replacedAt": iso(row.replaced_at),
        "replacedBy": row.replaced_by,
        "action": row.action,
    }


def stats_out(stats: Stats) -> dict[str, Any]:
    """Fields of ``StatsOut``; the hit rate is 0 before the first retrieval."""
    return {
        "total": stats.total,
        "byType": stats.by_type,
        "tokensUsed": stats.tokens_used,
        "hitRate": stats.hit_rate or 0.0,
        "cacheStats": {"hits": stats.cache_hits, "misses": stats.cache_misses},
        "pendingIndex": stats.pending_index,
        "hidden": stats.hidden,
    }


def preview_out(view: RetrievalView) -> dict[str, Any]:
    """Fields of ``PreviewOut``."""
    retrieval = view.retrieval
    hits = [_hit_out(hit, view.memories[hit.passage.parent]) for hit in retrieval.hits]
    return {
        "memories": hits,
        "emptyReason": view.empty_reason or None,
        "nearest": [
            {
                "id": hit.passage.parent,
                "key": view.nearest[hit.passage.parent].key,
                "score": hit.vector_score,
            }
            for hit in retrieval.nearest
        ],
        "resolution": resolution_out(view),
        "totalTokensUsed": sum(hit["tokens"] for hit in hits),
        "budgetMaxTokens": retrieval.query.max_tokens,
        "tookMs": retrieval.took_ms,
        "trace": trace_out(retrieval.trace) if retrieval.trace else None,
    }


def resolution_out(view: RetrievalView) -> dict[str, Any]:
    """Fields of ``Resolution``."""
    retrieval = view.retrieval
    degraded = [{**asdict(item), "message": explain(item)} for item in retrieval.degraded]
    return {
        "embeddingSource": retrieval.embedding_source,
        "embeddingModel": retrieval.embedding_model,
        "vectorStore": retrieval.vector_store,
        "strategyUsed": _STRATEGY_OF[retrieval.tier],
        "fusion": retrieval.fusion,
        "rerankApplied": retrieval.reranker is not None,
        "reranker": retrieval.reranker,
        "fallbackReason": "; ".join(item["message"] for item in degraded) or None,
        "degraded": degraded,
    }


def _hit_out(hit: Hit, memory: Memory) -> dict[str, Any]:
    content = cut_to_tokens(memory.content, hit.tokens) if hit.is_truncated else memory.content
    return {
        "id": str(memory.pk),
        "apiKeyId": str(memory.api_key.uid),
        "sessionId": memory.session_id,
        "type": memory.type,
        "key": memory.key,
        "content": content,
        "score": hit.score,
        "tokens": hit.tokens,
        "tier": _TIERS[hit.tier],
        "vecScore": hit.vector_score,
        "ftsScore": hit.keyword_score,
        "vecRank": hit.vector_rank,
        "ftsRank": hit.keyword_rank,
        "fusedScore": hit.fused_score,
        "rerankScore": hit.rerank_score,
        "truncated": hit.is_truncated,
    }


def trace_out(trace: Trace) -> dict[str, Any]:
    """The versioned JSON of a trace; entries without a value leave it out."""
    return {
        "terms": list(trace.terms),
        "stages": [
            {
                "name": stage.name,
                "tookMs": stage.took_ms,
                "note": stage.note,
                "entries": [
                    {
                        name: value
                        for name, value in (
                            ("passageId", entry.passage_id),
                            ("rank", entry.rank),
                            ("score", entry.score),
                            ("dropped", entry.dropped or None),
                        )
                        if value is not None
                    }
                    for entry in stage.entries
                ],
            }
            for stage in trace.stages
        ],
    }


def key_out(key: ApiKey) -> dict[str, Any]:
    """Fields of ``KeyOut``."""
    return {
        "id": str(key.uid),
        "name": key.name,
        "scopes": key.scopes,
        "hint": key.secret_hint,
        "isDefault": key.is_default,
        "memoryCount": getattr(key, "memory_count", 0),
        "createdAt": iso(key.created_at),
        "lastUsedAt": iso(key.last_used_at),
        "expiresAt": iso(key.expires_at),
        "revokedAt": iso(key.revoked_at),
    }


def job_out(job: Job) -> dict[str, Any]:
    """Fields of ``JobOut``."""
    return {
        "id": str(job.pk),
        "kind": job.kind,
        "state": job.state,
        "done": job.done,
        "total": job.total,
        "percent": job.percent,
        "message": job.message,
        "errorCode": job.error_code,
        "result": job.result,
        "attempts": job.attempts,
        "createdAt": iso(job.created_at),
        "startedAt": iso(job.started_at),
        "finishedAt": iso(job.finished_at),
    }
