"""Providers and the catalogue to the shapes of the API; credentials only as masks."""

from __future__ import annotations

from typing import Any

from engine.errors import EngineError
from engine.providers.catalogue import Service
from engine.providers.speech import SPEECH
from memory import provider_sources
from memory.clock import iso
from memory.provider_table import Entry
from memory.services import providers
from memory.services.provider_checks import Check
from memory.stored_settings import Settings
from memory.vault_settings import VaultSettings


def provider_out(entry: Entry, chosen: Settings, vaults: VaultSettings) -> dict[str, Any]:
    """Fields of ``ProviderOut``."""
    spec = entry.spec
    used = providers.uses(entry.name, chosen)
    kind = _of_kind(entry)
    return {
        "id": entry.id,
        "name": entry.name,
        "kind": spec.kind,
        **kind,
        "models": list(spec.models),
        "enabled": spec.enabled,
        "hasKey": bool(entry.key),
        "apiKeyMasked": entry.masked_key,
        "apiKeyEnv": spec.key_variable or None,
        "origin": entry.origin,
        "readOnly": entry.is_read_only,
        "fixed": sorted(providers.API_NAMES.get(name, name) for name in entry.fixed),
        "problems": {
            providers.API_NAMES.get(name, name): providers.explain_problem(code)
            for name, code in entry.problems.items()
        },
        "usedFor": {
            "chat": entry.is_usable and kind["can"]["chat"],
            "embedding": "embedding" in used,
            "rerank": "rerank" in used,
            "vaults": vaults.names(entry.name),
        },
        "revision": entry.revision,
        "createdAt": iso(entry.created_at),
        "updatedAt": iso(entry.updated_at),
    }


def _of_kind(entry: Entry) -> dict[str, Any]:
    """What the kind tells; a kind that this version does not know tells nothing."""
    try:
        service, url, speaks = entry.spec.service, entry.spec.url, entry.spec.speaks
    except (EngineError, ValueError):
        nothing = {"chat": False, "embedding": False, "rerank": False}
        return {
            "title": entry.spec.kind,
            "baseUrl": entry.spec.base_url,
            "protocol": entry.spec.protocol,
            "needsKey": False,
            "can": nothing,
        }
    return {
        "title": service.title,
        "baseUrl": url,
        "protocol": str(speaks),
        "needsKey": service.needs_key,
        "can": provider_sources.abilities(entry.spec),
    }


def service_out(service: Service) -> dict[str, Any]:
    """Fields of ``ServiceOut``."""
    speech = SPEECH[service.protocol]
    return {
        "kind": service.id,
        "title": service.title,
        "baseUrl": service.base_url,
        "protocol": str(service.protocol),
        "needsKey": service.needs_key,
        "apiKeyEnv": service.variable,
        "can": {
            "chat": service.chat,
            "embedding": speech.embedding is not None,
            "rerank": service.rerank,
        },
        "embeddingModels": [
            {
                "id": model.id,
                "dimensions": model.dimensions,
                "choices": list(model.choices),
                "maxTokens": model.max_tokens,
            }
            for model in service.embedding_models
        ],
        "rerankModels": list(service.rerank_models),
        "batchTexts": service.batch_texts,
        "batchTokens": service.batch_tokens,
    }


def check_out(done: Check) -> dict[str, Any]:
    """Fields of ``ProviderCheckOut``."""
    return {
        "what": done.what,
        "ok": done.ok,
        "latencyMs": done.latency_ms,
        "model": done.model or None,
        "dimensions": done.dimensions,
        "count": done.count,
        "code": done.code or None,
        "error": done.error or None,
    }
