"""Audit rows: ids, counts and durations, never text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from memory.clock import now
from memory.models import ApiKey, AuditEntry
from memory.principal import Principal

MAX_IDS: Final = 100


@dataclass(frozen=True, slots=True)
class Act:
    """What would have been a row of its own, were it not part of something larger."""

    action: str
    owner: ApiKey | None
    ids: tuple[str, ...]


_gathering: ContextVar[list[Act] | None] = ContextVar("gathering", default=None)


@contextmanager
def gathered() -> Iterator[list[Act]]:
    """What is recorded inside comes into the list instead: the caller writes one row for all."""
    acts: list[Act] = []
    token = _gathering.set(acts)
    try:
        yield acts
    finally:
        _gathering.reset(token)


def record(
    principal: Principal,
    action: str,
    *,
    owner: ApiKey | None = None,
    ids: Iterable[object] = (),
    duration_ms: float = 0,
    detail: Mapping[str, str | int | bool] | None = None,
) -> AuditEntry | None:
    """Write one row. More than 100 ids are counted but not listed. None while rows are gathered."""
    targets = [str(value) for value in ids]
    acts = _gathering.get()
    if acts is not None:
        acts.append(Act(action, owner, tuple(targets)))
        return None
    return AuditEntry.objects.create(
        at=now(),
        actor=principal.label[:160],
        action=action,
        owner=owner,
        target_ids=targets[:MAX_IDS],
        count=len(targets),
        duration_ms=round(duration_ms, 1),
        detail=dict(detail or {}),
    )
