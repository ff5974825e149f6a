"""``/api/settings``: memory settings, and the Qdrant settings with their routes."""

from __future__ import annotations

import time
from typing import Any, Final

from django.http import HttpRequest
from ninja import Router

from memory.api.auth import caller
from memory.api.schemas.settings import (
    MemorySettingsIn,
    ModelChoices,
    QdrantCleanupOut,
    QdrantHealthOut,
    QdrantSearchIn,
    QdrantSettingsIn,
    QdrantSettingsOut,
)
from memory.services import access, settings, status

router = Router(tags=["settings"], by_alias=True)

NOT_CONFIGURED: Final = "not_configured"
DEFAULT_MODEL: Final = "openai/text-embedding-3-small"


@router.get("/memory")
def read_memory_settings(request: HttpRequest) -> dict[str, Any]:
    """The settings in force."""
    access.require(caller(request), "manage")
    return settings.as_json(settings.get())


@router.put("/memory")
def update_memory_settings(request: HttpRequest, payload: MemorySettingsIn) -> dict[str, Any]:
    """Change the settings that are sent."""
    changes = payload.model_dump(exclude_unset=True, by_alias=True)
    return settings.as_json(settings.update(caller(request), changes))


@router.get("/qdrant", response=QdrantSettingsOut)
def read_qdrant_settings(request: HttpRequest) -> dict[str, Any]:
    """The Qdrant settings, never the key itself."""
    access.require(caller(request), "manage")
    return settings.qdrant_as_json(settings.get())


@router.put("/qdrant", response=QdrantSettingsOut)
def update_qdrant_settings(request: HttpRequest, payload: QdrantSettingsIn) -> dict[str, Any]:
    """Change the Qdrant settings; ``enabled`` also chooses the vector store."""
    changes = {
        name: value
        for name, value in payload.model_dump(exclude_unset=True, by_alias=True).items()
        if value is not None
    }
    return settings.qdrant_as_json(settings.update_qdrant(caller(request), changes))


@router.get("/qdrant/health", response=QdrantHealthOut)
def qdrant_health(request: HttpRequest) -> dict[str, Any]:
    """Whether Qdrant answers. This version has no connection to it and says so."""
    started = time.perf_counter()
    access.require(caller(request), "manage")
    latency_ms = round((time.perf_counter() - started) * 1000, 3)
    return {"ok": False, "latency_ms": latency_ms, "error": NOT_CONFIGURED}


@router.post("/qdrant/search")
def qdrant_search(request: HttpRequest, payload: QdrantSearchIn) -> dict[str, Any]:
    """A semantic search test against Qdrant."""
    access.require(caller(request), "manage")
    return {"ok": False, "results": [], "error": NOT_CONFIGURED}


@router.post("/qdrant/cleanup", response=QdrantCleanupOut)
def qdrant_cleanup(request: HttpRequest) -> dict[str, Any]:
    """Remove points of expired memories from Qdrant."""
    access.require(caller(request), "manage")
    days = settings.get().retention_days
    return {"ok": False, "deleted_count": 0, "retention_days": days, "error": NOT_CONFIGURED}


@router.get("/qdrant/embedding-models", response=ModelChoices)
def qdrant_embedding_models(request: HttpRequest) -> dict[str, Any]:
    """Embedding models a collection may name; the default one is always among them."""
    providers = status.embedding_providers(caller(request))
    names = [model["id"] for provider in providers for model in provider["models"]]
    return {"models": [{"value": name, "label": name} for name in [DEFAULT_MODEL, *names]]}
