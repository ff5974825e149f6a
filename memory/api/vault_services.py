"""``/api/settings/vaults``: which services embed, answer and rank for vaults."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Router

from memory.api.auth import caller
from memory.api.schemas.vault_services import (
    VaultServicesIn,
    VaultServicesOut,
    VaultServiceTestIn,
    VaultServiceTestOut,
)
from memory.services.vaults import checking, choosing
from memory.services.vaults.choosing import Choice
from memory.vault_services import NAMES, Chosen

router = Router(tags=["settings"], by_alias=True)


@router.get("/vaults", response=VaultServicesOut)
def read_vault_services(request: HttpRequest) -> dict[str, Any]:
    """The services of vaults in force, and where each was chosen. Never a key."""
    return _out(choosing.get(caller(request)))


@router.put("/vaults", response=VaultServicesOut)
def update_vault_services(request: HttpRequest, payload: VaultServicesIn) -> dict[str, Any]:
    """Choose services of vaults. Choosing one is the consent to send it texts of vaults."""
    changes = payload.model_dump(exclude_unset=True, by_alias=True)
    revision = changes.pop("revision", None)
    return _out(choosing.update(caller(request), changes, revision=revision))


@router.post("/vaults/test", response=VaultServiceTestOut)
def test_vault_service(request: HttpRequest, payload: VaultServiceTestIn) -> dict[str, Any]:
    """Ask a service once; nothing of a vault is sent. It may cost what one request costs."""
    done = checking.check(caller(request), payload.service)
    return {
        "service": done.name,
        "ok": done.ok,
        "latencyMs": done.latency_ms,
        "model": done.model,
        "host": done.host,
        "dimensions": done.dimensions,
        "code": done.code or None,
        "reason": done.reason or None,
        "error": done.error or None,
        "status": done.status,
    }


def _out(choice: Choice) -> dict[str, Any]:
    kept = choice.kept
    found = {name: choice.services.named(name) for name in NAMES}
    return {
        "embeddingProviderModel": kept.embedding,
        "embeddingDimensions": kept.dimensions or None,
        "generationProviderModel": kept.generation,
        "generationJsonMode": kept.json_mode,
        "rerankProviderModel": kept.rerank,
        "inForce": {name: _service(one) if one else None for name, one in found.items()},
        "revision": kept.revision,
    }


def _service(chosen: Chosen) -> dict[str, Any]:
    return {
        "origin": chosen.origin,
        "provider": chosen.provider or None,
        "protocol": chosen.protocol or None,
        "model": chosen.model,
        "host": chosen.host or None,
        "dimensions": chosen.dimensions,
        "jsonMode": chosen.json_mode if chosen.name == "generation" else None,
        "apiKeyEnv": chosen.key_variable or None,
        "hasKey": chosen.has_key,
        "problem": chosen.problem or None,
    }
