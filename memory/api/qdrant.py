"""``/api/settings/qdrant``: where Qdrant is, and tests of it."""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpRequest
from ninja import Router

from memory.api.auth import caller
from memory.api.schemas.qdrant import (
    ModelChoices,
    QdrantCleanupOut,
    QdrantHealthOut,
    QdrantSearchIn,
    QdrantSearchOut,
    QdrantSettingsIn,
    QdrantSettingsOut,
)
from memory.services import access, embedding, embedding_models, qdrant, settings
from memory.services.qdrant import QdrantHit, Tried
from memory.stored_settings import Settings

router = Router(tags=["settings"], by_alias=True)

DEFAULT_MODEL: Final = "openai/text-embedding-3-small"


@router.get("/qdrant", response=QdrantSettingsOut)
def read_qdrant_settings(request: HttpRequest) -> dict[str, Any]:
    """The Qdrant settings, never the key itself."""
    access.require(caller(request), "manage")
    return _settings_out(settings.get())


@router.put("/qdrant", response=QdrantSettingsOut)
def update_qdrant_settings(request: HttpRequest, payload: QdrantSettingsIn) -> dict[str, Any]:
    """Change the Qdrant settings; ``enabled`` also chooses the vector store.

    ``probe`` tells how a real search went when it is on afterwards. One that failed does not undo
    the change: the collection is built when the server answers.
    """
    changes = {
        name: value
        for name, value in payload.model_dump(exclude_unset=True, by_alias=True).items()
        if value is not None
    }
    changed = settings.update_qdrant(caller(request), changes)
    probe = _health_out(qdrant.probe(changed)) if changed.qdrant_enabled else None
    return _settings_out(changed) | {"probe": probe}


@router.get("/qdrant/health", response=QdrantHealthOut)
def qdrant_health(request: HttpRequest) -> dict[str, Any]:
    """A real search, and how long it took."""
    return _health_out(qdrant.health(caller(request)))


@router.post("/qdrant/search", response=QdrantSearchOut)
def qdrant_search(request: HttpRequest, payload: QdrantSearchIn) -> dict[str, Any]:
    """A semantic search test against Qdrant alone."""
    done = qdrant.search(caller(request), payload.query, payload.top_k)
    return {
        **_tried(done.tried),
        "latencyMs": done.tried.latency_ms,
        "results": [_hit_out(hit) for hit in done.hits],
    }


@router.post("/qdrant/cleanup", response=QdrantCleanupOut)
def qdrant_cleanup(request: HttpRequest) -> dict[str, Any]:
    """Remove points of memories that have expired or are no more."""
    done = qdrant.clean_up(caller(request))
    return {
        **_tried(done.tried),
        "deletedCount": done.deleted,
        "expiredCount": done.expired,
        "strayCount": done.strays,
        "retentionDays": settings.get().retention_days,
    }


@router.get("/qdrant/embedding-models", response=ModelChoices)
def qdrant_embedding_models(request: HttpRequest) -> dict[str, Any]:
    """Embedding models a collection may name; the default one is always among them."""
    providers = embedding_models.embedding_providers(caller(request))
    names = [model["id"] for provider in providers for model in provider["models"]]
    listed = dict.fromkeys([DEFAULT_MODEL, *names])
    return {"models": [{"value": name, "label": name} for name in listed]}


def _settings_out(chosen: Settings) -> dict[str, Any]:
    held = qdrant.model_note(chosen, embedding.active_index())
    return settings.qdrant_as_json(chosen) | {"activeEmbeddingModel": held or None}


def _health_out(tried: Tried) -> dict[str, Any]:
    detail = tried.detail
    return {
        **_tried(tried),
        "latencyMs": tried.latency_ms,
        "collection": detail.get("collection"),
        "points": detail.get("points"),
        "dimensions": detail.get("dim"),
        "behind": detail.get("behind"),
    }


def _tried(tried: Tried) -> dict[str, Any]:
    return {"ok": tried.ok, "error": tried.error, "message": tried.message}


def _hit_out(hit: QdrantHit) -> dict[str, Any]:
    memory = hit.memory
    return {
        "id": str(memory.pk),
        "score": hit.score,
        "payload": {
            "memoryId": str(memory.pk),
            "apiKeyId": str(memory.api_key.uid),
            "sessionId": memory.session_id,
            "type": memory.type,
            "key": memory.key,
            "content": memory.content,
        },
    }
