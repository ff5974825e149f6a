"""Reading and changing the settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from django.db import transaction
from django.utils.translation import gettext as _

from engine.errors import EngineError
from engine.types import Degraded
from memory import backend_secrets, backend_wiring, qdrant_store, secretbox, wiring
from memory.clock import now
from memory.errors import Invalid
from memory.models import EngineSettings, Passage
from memory.principal import Principal
from memory.services import access, audit, embedding, indexes, mirroring, models
from memory.services.backends import states
from memory.services.degraded import explain
from memory.stored_settings import MEMORY_FIELDS, QDRANT_FIELDS, SOURCE_FIELDS, Field, Settings

BACKENDS: Final = {
    "primaryBackend": "primary_backend",
    "fallbackBackends": "fallback_backends",
    "backendConfigs": "backend_configs",
}
"""Settings that choose the memory backends, by their API names."""


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

    Another embedding source starts the job that builds its index. Choosing Qdrant as the vector
    store, or another instead of it, turns the switch of Qdrant too. Raises ``Invalid`` for a local
    model that is not installed, or for Qdrant without an address.
    """
    _check_model(changes.get("localModel"))
    changes = _with_sealed_backends(principal, changes)
    with transaction.atomic():
        before, made_by = wiring.settings(), indexes.source_values()
        after = store_fields(principal, changes, MEMORY_FIELDS)
        if after.vector_store != before.vector_store:
            after = _turned(principal, after)
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


def _with_sealed_backends(principal: Principal, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The changes with secrets of backends sealed. Raises ``Invalid`` for what cannot serve."""
    changed, before = dict(changes), wiring.settings()
    known = {name: changed[name] for name in BACKENDS if changed.get(name) is not None}
    if not known:
        return changed
    access.require(principal, "manage")
    if "backendConfigs" in known:
        changed["backendConfigs"] = known["backendConfigs"] = backend_secrets.sealed(
            known["backendConfigs"], before.backend_configs
        )
    after = replace(before, **{BACKENDS[name]: value for name, value in known.items()})
    problems = backend_problems(after)
    if problems:
        raise Invalid(_("The memory backends cannot be set up like that."), fields=problems)
    return changed


def backend_problems(chosen: Settings) -> dict[str, str]:
    """What is wrong with the backends of settings, by field.

    A configuration that lacks something only matters when it is chosen to serve.
    """
    plan = backend_wiring.plan_of(chosen)
    problems: dict[str, str] = {}
    named = (
        ("primaryBackend", [chosen.primary_backend]),
        ("fallbackBackends", chosen.fallback_backends),
    )
    for name, error in plan.problems.items():
        if error.code != "missing" or name in (chosen.primary_backend, *chosen.fallback_backends):
            place = f"backendConfigs.{name}.{error.place}"
            problems[place] = states.problem(error.place, error.code)
    for place, names in named:
        for name in names:
            if name.strip() not in {*backend_wiring.ALIASES, *chosen.backend_configs}:
                problems[place] = _("There is no memory backend of this name.")
    return problems


def update_qdrant(principal: Principal, changes: Mapping[str, Any]) -> Settings:
    """Change Qdrant settings. Switching it on or off also chooses the vector store.

    Switched on, or pointed elsewhere, it is filled in the background. Raises ``Invalid`` for an
    address that may not be called and for a name that no collection can have.
    """
    with transaction.atomic():
        before = wiring.settings()
        after = store_fields(principal, changes, QDRANT_FIELDS)
        if "enabled" in changes:
            store = "qdrant" if changes["enabled"] else "auto"
            after = store_fields(principal, {"vectorStore": store}, MEMORY_FIELDS)
        _check_place(after)
        _fill_elsewhere(principal, before, after)
    return after


def _turned(principal: Principal, chosen: Settings) -> Settings:
    """The switch of Qdrant in step with the vector store that was chosen."""
    is_wanted = chosen.vector_store == "qdrant"
    if chosen.qdrant_enabled == is_wanted:
        return chosen
    if is_wanted and not chosen.qdrant_host:
        message = _("No host of Qdrant is set.")
        raise Invalid(message, fields={"vectorStore": message})
    before = replace(chosen, qdrant_enabled=not is_wanted)
    after = store_fields(principal, {"enabled": is_wanted}, QDRANT_FIELDS)
    _fill_elsewhere(principal, before, after)
    return after


_PLACE: Final = ("qdrant_host", "qdrant_port", "qdrant_collection", "qdrant_quantization")


def _check_place(chosen: Settings) -> None:
    if not chosen.qdrant_host:
        return
    try:
        qdrant_store.place(chosen)
    except EngineError as error:
        message = explain(Degraded("qdrant", error.code, str(error)))
        name = "collection" if error.code == "collection_name" else "host"
        raise Invalid(message, fields={name: message}) from None


def _fill_elsewhere(principal: Principal, before: Settings, after: Settings) -> None:
    """Have Qdrant filled that was switched on now, or is to be another one."""
    if not qdrant_store.is_on(after) or embedding.active_index() is None:
        return
    is_other = any(getattr(before, name) != getattr(after, name) for name in _PLACE)
    if is_other or not qdrant_store.is_on(before):
        mirroring.check_soon(requested_by=principal.label)


def store_fields(
    principal: Principal, changes: Mapping[str, Any], fields: tuple[Field, ...]
) -> Settings:
    """Change settings of one table of fields by API name, with an audit row."""
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
    backend_wiring.reset()
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
        elif entry.name == "backend_configs":
            answer[entry.api] = backend_secrets.shown(value)
        else:
            answer[entry.api] = list(value) if isinstance(value, tuple) else value
    return answer
