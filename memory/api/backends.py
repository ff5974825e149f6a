"""``/api/memory/backends``: who holds the memories, and whether each of them serves."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Router

from memory.api.auth import caller
from memory.api.present import job_out
from memory.api.schemas.access import JobOut
from memory.api.schemas.backends import BackendsOut
from memory.services.backends import transfers
from memory.services.backends.states import BackendState, backends

router = Router(tags=["backends"], by_alias=True)


@router.get("/backends", response=BackendsOut)
def list_backends(request: HttpRequest, check: bool = True) -> dict[str, Any]:
    """Every backend; each is really asked, unless ``check`` is false."""
    found = backends(caller(request), check=check)
    return {
        "primary": found.primary,
        "fallbacks": list(found.fallbacks),
        "warning": found.warning or None,
        "backends": [_out(row) for row in found.rows],
    }


@router.post("/backends/{backend_id}/copy", response=JobOut)
def copy_to_backend(request: HttpRequest, backend_id: str) -> dict[str, Any]:
    """Start the job that copies to a backend what it lacks."""
    return job_out(transfers.start(caller(request), "copy", backend_id))


@router.post("/backends/{backend_id}/pull", response=JobOut)
def pull_from_backend(request: HttpRequest, backend_id: str) -> dict[str, Any]:
    """Start the job that reads all that a backend has."""
    return job_out(transfers.start(caller(request), "pull", backend_id))


def _out(row: BackendState) -> dict[str, Any]:
    health = row.health
    return {
        "id": row.id,
        "displayName": row.display_name,
        "isPrimary": row.is_primary,
        "isFallback": row.is_fallback,
        "adapter": row.adapter,
        "health": None
        if health is None
        else {
            "ok": health.available,
            "latencyMs": health.detail.get("latency_ms"),
            "error": None if health.available else row.reason,
            "code": health.detail.get("code") or None,
        },
        "problem": row.problem or None,
        "missing": row.missing,
        "pending": row.pending,
        "config": {
            "baseUrl": row.place or None,
            "hasApiKey": row.has_key,
            "backendType": row.label or None,
        },
    }
