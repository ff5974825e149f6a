"""``/api/memory``: retrieval preview, reindex, compaction, engine status, health."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Router

from memory.api.auth import caller
from memory.api.present import preview_out
from memory.api.present_engine import plans_out, status_out, summarized_out
from memory.api.requests import retrieve_request
from memory.api.schemas.engine import (
    PreviewIn,
    PreviewOut,
    ReindexIn,
    ReindexOut,
    RetiredOut,
    RollbackOut,
    SummarizeIn,
    SummarizeOut,
    UndoOut,
)
from memory.api.schemas.memories import HealthOut
from memory.api.schemas.providers import EmbeddingProvidersOut
from memory.api.schemas.status import EngineStatusOut
from memory.services import compaction, embedding_models, reindex, retrieval, rollback, status

router = Router(tags=["engine"], by_alias=True)


@router.post("/retrieve-preview", response=PreviewOut)
def retrieve_preview(request: HttpRequest, payload: PreviewIn) -> dict[str, Any]:
    """What a retrieval would bring, and why. Changes nothing."""
    return preview_out(retrieval.retrieve(caller(request), retrieve_request(payload)))


@router.post("/reindex", response=ReindexOut)
def start_reindex(request: HttpRequest, payload: ReindexIn | None = None) -> dict[str, Any]:
    """Start the job that fills what waits; with ``force`` it does everything again."""
    job = reindex.start(caller(request), force=bool(payload and payload.force))
    return {"started": True, "pending": reindex.pending(), "job_id": str(job.pk)}


@router.post("/engine/rollback", response=RollbackOut)
def roll_back(request: HttpRequest) -> dict[str, Any]:
    """Take the last change of the embedding model back: its settings and its index."""
    done = rollback.roll_back(caller(request))
    return {
        "signature": done.index.signature,
        "active": done.is_active,
        "pending": done.pending,
        "job_id": str(done.job.pk) if done.job else None,
    }


@router.delete("/engine/retired", response=RetiredOut)
def drop_retired(request: HttpRequest) -> dict[str, Any]:
    """Drop the index that is kept to go back to, before its time is over."""
    return {"dropped": rollback.drop_now(caller(request))}


@router.post("/summarize", response=SummarizeOut)
def summarize(request: HttpRequest, payload: SummarizeIn | None = None) -> dict[str, Any]:
    """Compact old memories, or those over a token budget; ``dryRun`` shows the exact text."""
    body = payload or SummarizeIn()
    principal = caller(request)
    wanted = compaction.CompactRequest(
        kind=body.mode,
        owner=body.api_key_id or None,
        all_owners=body.all_owners,
        older_than_days=body.older_than_days,
        max_tokens=body.max_tokens,
        session=body.session_id or None,
    )
    plans = compaction.preview(principal, wanted)
    if body.dry_run or not any(plan.candidates for plan in plans):
        return plans_out(plans)
    return summarized_out(plans, compaction.run_now(principal, wanted))


@router.post("/summarize/{compaction_id}/undo", response=UndoOut)
def undo_summarize(request: HttpRequest, compaction_id: str) -> dict[str, Any]:
    """Bring back what a compaction archived; takes the id of the compaction or of a summary."""
    undone = compaction.undo(caller(request), compaction_id)
    return {"compaction_id": str(undone.pk), "restored": undone.original_count}


@router.get("/engine-status", response=EngineStatusOut)
def engine_status(request: HttpRequest) -> dict[str, Any]:
    """Every tier: whether it serves, and why not."""
    return status_out(status.engine_status(caller(request)))


@router.get("/health", response=HealthOut)
def health(request: HttpRequest) -> dict[str, Any]:
    """A real round trip: write, find, delete."""
    result = status.health(caller(request))
    return {"working": result.working, "latency_ms": result.latency_ms, "error": result.error}


@router.get("/embedding-providers", response=EmbeddingProvidersOut)
def embedding_providers(request: HttpRequest) -> dict[str, Any]:
    """Embedding models to choose from, by provider."""
    return {"providers": embedding_models.embedding_providers(caller(request))}
