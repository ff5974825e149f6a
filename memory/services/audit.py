"""Audit rows: ids, counts and durations, never text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from memory.clock import now
from memory.models import ApiKey, AuditEntry
from memory.principal import Principal

MAX_IDS: Final = 100


def record(
    principal: Principal,
    action: str,
    *,
    owner: ApiKey | None = None,
    ids: Iterable[object] = (),
    duration_ms: float = 0,
    detail: Mapping[str, str | int | bool] | None = None,
) -> None:
    """Write one row. More than 100 ids are counted but not listed."""
    targets = [str(value) for value in ids]
    AuditEntry.objects.create(
        at=now(),
        actor=principal.label[:160],
        action=action,
        owner=owner,
        target_ids=targets[:MAX_IDS],
        count=len(targets),
        duration_ms=round(duration_ms, 1),
        detail=dict(detail or {}),
    )
