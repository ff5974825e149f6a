"""Going back: the last change of the embedding model is taken back, or its spare index dropped.

While an index is being built, that is given up and the active one stays. Otherwise the retired
index is revived: what changed meanwhile is embedded, and it is active again as soon as it is
complete; at once when nothing changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from memory import wiring
from memory.errors import NotFound, TierDown
from memory.models import EngineSettings, Job, Passage, VectorIndex
from memory.principal import Principal
from memory.services import access, audit, embedding, indexes, settings
from memory.services.degraded import explain_health
from memory.stored_settings import SOURCE_FIELDS, Settings, normalise


@dataclass(frozen=True, slots=True)
class RolledBack:
    """The index gone back to; unless it is active already, a job embeds what is ``pending``."""

    index: VectorIndex
    is_active: bool
    pending: int
    job: Job | None


def roll_back(principal: Principal) -> RolledBack:
    """Take the last change of the model back, with the settings that chose it.

    Raises ``NotFound`` when there is nothing to go back to, and ``TierDown`` when the model of the
    earlier index cannot be used any more.
    """
    access.require(principal, "manage")
    earlier = indexes.earlier()
    if earlier is None:
        raise _nothing()
    values = _settings_of(earlier)
    with transaction.atomic():
        settings.put_back(values)
        row = indexes.go_back_to(earlier.pk)
        if row is None:
            raise _nothing()
        audit.record(principal, "engine.rollback", ids=[row.pk], detail={"model": row.model})
    return _bring_up(row)


def drop_now(principal: Principal) -> int:
    """Drop the retired index before its time; how many were dropped. Raises ``NotFound``."""
    access.require(principal, "manage")
    row = indexes.retired()
    if row is None:
        raise _nothing()
    dropped = indexes.drop_surplus(kept=0)
    audit.record(principal, "engine.drop_retired", ids=[row.pk], detail={"model": row.model})
    return dropped


def _bring_up(row: VectorIndex) -> RolledBack:
    """Switch now when nothing is missing; what takes its time is left to the job."""
    if row.state == VectorIndex.State.ACTIVE:
        waiting = row.marks.count()
        return RolledBack(row, True, waiting, embedding.embed_soon() if waiting else None)
    if Passage.objects.count() <= indexes.AT_ONCE:
        indexes.check(row)
    if indexes.switch(row):
        return RolledBack(row, True, 0, None)
    return RolledBack(row, False, row.marks.count(), embedding.embed_soon())


def _settings_of(row: VectorIndex) -> dict[str, Any]:
    """The stored settings that choose the source of an index. Raises ``TierDown`` without one."""
    values: dict[str, Any] = dict(row.made_by)
    if not _chooses(values, row):
        # They were not kept, or what they choose has changed: name the model itself.
        values = _by_name(row)
    source = wiring.resolve_source(_with(values)).source
    health = source.health() if source is not None else None
    if health is not None and not health.available:
        message = _("The earlier model cannot be used now: %(reason)s")
        reason = explain_health(health)
        raise TierDown(message % {"reason": reason}, code="model_unavailable")
    return values


def _by_name(row: VectorIndex) -> dict[str, Any]:
    for name in wiring.local_models(row):
        values = {"memoryEmbeddingSource": "transformers", "memoryLocalModel": name}
        if _chooses(values, row):
            return values
    message = _("The model %(model)s of the earlier index is no longer available here.")
    raise TierDown(message % {"model": row.model}, code="model_unavailable")


def _chooses(values: Mapping[str, Any], row: VectorIndex) -> bool:
    source = wiring.resolve_source(_with(values)).source
    return source is not None and wiring.makes(source, row)


def _with(values: Mapping[str, Any]) -> Settings:
    """The settings as they would be with other values for the source."""
    stored = EngineSettings.objects.filter(pk=1).values_list("stored", flat=True).first() or {}
    chosen = {field.key for field in SOURCE_FIELDS}
    others = {key: value for key, value in stored.items() if key not in chosen}
    return normalise({**others, **values})


def _nothing() -> NotFound:
    return NotFound(_("There is no earlier index to go back to."))
