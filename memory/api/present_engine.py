"""Engine status and compactions to the shapes of the API."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from pydantic.alias_generators import to_camel

from memory.clock import iso
from memory.services.compaction import Outcome, Plan
from memory.services.status import EngineStatus
from memory.services.status_types import TierState


def status_out(status: EngineStatus) -> dict[str, Any]:
    """The first seed's engine status, and ours beside it."""
    covered = status.coverage
    cache = {"hits": status.cache_hits, "misses": status.cache_misses, "size": status.cache_size}
    return {
        "keyword": {**_tier(status.keyword), "backend": status.keyword.label},
        "embedding": {
            **_tier(status.embedding),
            "source": status.source,
            "model": status.model,
            "dimensions": status.dimensions,
            "cacheStats": cache,
        },
        "vectorStore": {
            **_tier(status.vector_store),
            "backend": status.vector_store.label,
            "rowCount": covered.indexed if covered.signature else 0,
            "needsReindex": covered.pending,
        },
        "qdrant": _qdrant(status.qdrant),
        "fusion": {**_tier(status.fusion), "rule": status.fusion.label},
        "rerank": _rerank(status),
        "coverage": {to_camel(name): value for name, value in asdict(covered).items()}
        | {"percent": covered.percent, "retiredUntil": iso(covered.retired_until)},
    }


def _qdrant(tier: TierState) -> dict[str, Any]:
    is_off = tier.code == "disabled"
    is_healthy = tier.latency_ms is not None
    return {
        **_tier(tier),
        "enabled": not is_off,
        "healthy": is_healthy,
        "latencyMs": tier.latency_ms,
        "error": None if is_off or is_healthy else tier.code,
    }


def _rerank(status: EngineStatus) -> dict[str, Any]:
    tier = status.rerank
    is_off = tier.code == "disabled"
    return {
        "enabled": not is_off,
        "provider": None if is_off else status.rerank_provider or tier.label,
        "model": None if is_off else status.rerank_model,
        "available": tier.state == "on",
        "reason": "rerank disabled" if is_off else tier.reason or None,
    }


def _tier(tier: TierState) -> dict[str, Any]:
    return {"available": tier.available, "reason": tier.reason or None}


def plans_out(plans: Sequence[Plan]) -> dict[str, Any]:
    """What a compaction would do (``SummarizeOut``, dry)."""
    return {
        "candidates": [
            {
                "id": str(item.memory.pk),
                "apiKeyId": str(plan.owner.uid),
                "type": item.memory.type,
                "key": item.memory.key,
                "content": item.memory.content,
                "tokens": item.memory.tokens,
                "createdAt": iso(item.memory.created_at),
                "newContent": item.new_content,
            }
            for plan in plans
            for item in plan.candidates
        ],
        "totalTokens": sum(plan.total_tokens for plan in plans),
        "tokensSaved": sum(plan.tokens_saved for plan in plans),
        "originalCount": sum(plan.original_count for plan in plans),
        "summarizedCount": sum(len(plan.candidates) for plan in plans),
        "deletedCount": 0,
        "summaryId": None,
        "dryRun": True,
        "summaries": [
            {
                "apiKeyId": str(plan.owner.uid),
                "compactionId": None,
                "summaryIds": [],
                "texts": list(plan.texts),
                "originalCount": len(plan.candidates),
                "tokensSaved": plan.tokens_saved,
            }
            for plan in plans
        ],
        "jobId": None,
    }


def summarized_out(plans: Sequence[Plan], outcome: Outcome) -> dict[str, Any]:
    """What a compaction did (``SummarizeOut``)."""
    summaries = [
        {
            "apiKeyId": str(done.api_key.uid),
            "compactionId": str(done.pk),
            "summaryIds": done.summary_ids,
            "texts": outcome.texts.get(str(done.pk), []),
            "originalCount": done.original_count,
            "tokensSaved": done.tokens_saved,
        }
        for done in outcome.compactions
    ]
    ids = [summary_id for done in outcome.compactions for summary_id in done.summary_ids]
    return {
        **plans_out(plans),
        "tokensSaved": sum(done.tokens_saved for done in outcome.compactions),
        "deletedCount": sum(
            done.original_count for done in outcome.compactions if done.summary_ids
        ),
        "summaryId": ids[0] if ids else None,
        "dryRun": False,
        "summaries": summaries,
        "jobId": str(outcome.job.pk),
    }
