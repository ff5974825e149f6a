"""Embedding models to choose from, by provider, in the first system's shape."""

from __future__ import annotations

from typing import Any

from engine.errors import EngineError
from engine.providers import catalogue
from engine.providers.speech import SPEECH
from memory import provider_sources, provider_table, wiring
from memory.models import VectorIndex
from memory.principal import Principal
from memory.provider_table import Entry
from memory.services import access, models
from memory.stored_settings import Settings


def embedding_providers(principal: Principal) -> list[dict[str, Any]]:
    """Local models, the address in the settings, every provider with embeddings, and then the
    services of the catalogue that no provider is set up for.

    ``hasKey`` tells whether it could be asked now: it is set up and on, and has the key that it
    needs.
    """
    access.require(principal, "read")
    chosen = wiring.settings()
    found = [_local(principal), *_own(chosen)]
    table = provider_table.table()
    found += [row for entry in table if (row := _provider(entry, chosen)) is not None]
    known = {entry.spec.kind for entry in table} | {entry.name for entry in table}
    found += [
        _row(service.id, False, [(m.id, m.dimensions) for m in service.embedding_models])
        for service in catalogue.services()
        if service.embedding_models and service.id not in known
    ]
    return found


def _local(principal: Principal) -> dict[str, Any]:
    return _row(
        "local",
        True,
        [
            (model.id, model.dimension)
            for model in models.local_models(principal)
            if model.is_installed and model.use == "embedding"
        ],
    )


def _own(chosen: Settings) -> list[dict[str, Any]]:
    if not chosen.has_endpoint:
        return []
    model = str(chosen.custom_model_id)
    return [_row("compatible", bool(chosen.custom_api_key), [(model, _probed(model))])]


def _provider(entry: Entry, chosen: Settings) -> dict[str, Any] | None:
    """A provider with the models that are known of it; None for one without embeddings."""
    try:
        service = entry.spec.service
    except EngineError:
        return None
    if SPEECH[entry.spec.speaks].embedding is None:
        return None
    is_own_language = entry.spec.speaks is service.protocol
    known = service.embedding_models if is_own_language else ()
    listed = {model.id: model.dimensions for model in known}
    parts = provider_sources.split(chosen.embedding_provider_model)
    if parts and parts[0] == entry.name:
        listed.setdefault(parts[1], _probed(parts[1]))
    return _row(entry.name, provider_sources.can_embed(entry), list(listed.items()))


def _probed(model: str) -> int | None:
    """The dimension that a remote model's own index tells."""
    row = VectorIndex.objects.filter(source="remote", model=model).order_by("-pk").first()
    return row.dim if row else None


def _row(provider: str, has_key: bool, listed: list[tuple[str, int | None]]) -> dict[str, Any]:
    named = [
        {"id": f"{provider}/{model}", "name": model, "dimensions": dim} for model, dim in listed
    ]
    return {"provider": provider, "hasKey": has_key, "models": named}
