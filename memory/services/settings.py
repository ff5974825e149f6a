"""Reading and changing the settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from memory import secretbox, wiring
from memory.clock import now
from memory.errors import Invalid
from memory.models import EngineSettings, Passage
from memory.principal import Principal
from memory.services import access, audit, embedding, indexes, models
from memory.stored_settings import MEMORY_FIELDS, QDRANT_FIELDS, SOURCE_FIELDS, Field, Settings


def get() -> Settings:
    """The settings in force."""
    return wiring.settings()


def as_json(settings: Settings) -> dict[str, Any]:
    """The memory settings under their API names; secrets only as a mask."""
    return _as_json(settings, MEMORY_FIELDS)


def qdrant_as_json(settings: Settings) -> dict[str, Any]:
    """The Qdrant settings under their API names; the key only as a mask."""
    return _as_json(settings, QDRANT_FIELDS)


def update(principal: Principal, changes: Mapping[str, Any]) -> Settings:
    """Change memory settings by API name. Values are validated by the caller's schema.

    Another embedding source starts the job that builds its index. Raises ``Invalid`` for a local
    model that is not installed.
    """
    _check_model(changes.get("localModel"))
    with transaction.atomic():
        before, made_by = wiring.settings(), indexes.source_values()
        after = _update(principal, changes, MEMORY_FIELDS)
        if any(
            getattr(before, entry.name) != getattr(after, entry.name) for entry in SOURCE_FIELDS
        ):
            indexes.keep_source(before, made_by)
            if Passage.objects.exists():
                embedding.embed_soon()
        if before.vector_store != after.vector_store and embedding.is_unkept():
            embedding.embed_soon()
    return after


def put_back(values: Mapping[str, Any]) -> None:
    """Choose the embedding source by stored values, as an index has kept them; others go.

    Call inside a transaction; the caller writes the audit row.
    """
    row, _created = EngineSettings.objects.select_for_update().get_or_create(pk=1)
    for entry in SOURCE_FIELDS:
        row.stored.pop(entry.key, None)
    row.stored.update(values)
    row.revision += 1
    row.updated_at = now()
    row.save()


def _check_model(name: str | None) -> None:
    if name is None or name in dict(models.installed_embedders()):
        return
    message = _("This model is not installed here.")
    raise Invalid(message, fields={"localModel": message})


def update_qdrant(principal: Principal, changes: Mapping[str, Any]) -> Settings:
    """Change Qdrant settings. Switching it on or off also chooses the vector store."""
    stored = dict(changes)
    if "enabled" not in stored:
        return _update(principal, stored, QDRANT_FIELDS)
    with transaction.atomic():
        store = "qdrant" if stored["enabled"] else "auto"
        _update(principal, {"vectorStore": store}, MEMORY_FIELDS)
        return _update(principal, stored, QDRANT_FIELDS)


def _update(
    principal: Principal, changes: Mapping[str, Any], fields: tuple[Field, ...]
) -> Settings:
    access.require(principal, "manage")
    known = {entry.api: entry for entry in fields}
    with transaction.atomic():
        row, _created = EngineSettings.objects.select_for_update().get_or_create(pk=1)
        for name, value in changes.items():
            entry = known[name]
            row.stored[entry.key] = secretbox.seal(value) if entry.kind == "secret" else value
        row.revision += 1
        row.updated_at = now()
        row.save()
        audit.record(principal, "settings.update", ids=sorted(changes))
    return wiring.settings()


def _as_json(settings: Settings, fields: tuple[Field, ...]) -> dict[str, Any]:
    answer: dict[str, Any] = {}
    for entry in fields:
        value = getattr(settings, entry.name)
        if entry.kind == "secret":
            secret = secretbox.open_sealed(value)
            title = entry.api[0].upper() + entry.api[1:]
            answer[f"has{title}"] = bool(secret)
            answer[f"{entry.api}Masked"] = secretbox.mask(secret)
        else:
            answer[entry.api] = list(value) if isinstance(value, tuple) else value
    return answer
