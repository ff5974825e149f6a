"""Events of mem0's clients: what the audit says was done with the caller's memories."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from memory.errors import NotFound
from memory.models import AuditEntry, Memory
from memory.principal import Principal
from memory.services import access
from memory.services.mem0.entities import own, owner_of

KINDS: Final = {
    "memory.create": "ADD",
    "memory.update": "UPDATE",
    "memory.revert": "UPDATE",
    "memory.delete": "DELETE",
    "memory.purge": "DELETE",
    "memory.clear": "DELETE",
    "memory.batch": "BATCH",
    "memory.list": "GET_ALL",
    "retrieve.client": "SEARCH",
}
_BASE: Final = 0x6D656D30_0000_4000_8000 << 48
"""An event's id is the number of its audit row, in the form of a UUID."""
_MOST: Final = 2**48


@dataclass(frozen=True, slots=True)
class Event:
    """One event, with those of its memories that are still there."""

    id: str
    kind: str
    at: datetime
    duration_ms: float
    memories: Sequence[Memory] = ()


@dataclass(frozen=True, slots=True)
class EventPage:
    """Events, newest first, and how many there are in all."""

    events: list[Event]
    total: int


def event_id(row: AuditEntry) -> str:
    """The id under which a client finds an event again."""
    return str(uuid.UUID(int=_BASE + row.pk))


def get(principal: Principal, reference: str) -> Event:
    """One event. Raises ``NotFound``, also for those about another owner."""
    access.require(principal, "read")
    try:
        number = uuid.UUID(reference).int - _BASE
    except ValueError:
        number = 0
    row = _rows(principal).filter(pk=number).first() if 0 < number < _MOST else None
    if row is None:
        raise NotFound(_("There is no such event."))
    return _event(row, _memories(principal, row))


def list_page(
    principal: Principal,
    *,
    kind: str = "",
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int = 50,
    page: int = 1,
) -> EventPage:
    """Events of the caller's memories, whoever acted."""
    access.require(principal, "read")
    rows = _rows(principal)
    if kind:
        rows = rows.filter(action__in=[name for name, value in KINDS.items() if value == kind])
    if since is not None:
        rows = rows.filter(at__gte=since)
    if until is not None:
        rows = rows.filter(at__lt=until)
    found = rows.order_by("-at", "-id")[(page - 1) * limit : page * limit]
    return EventPage([_event(row) for row in found], rows.count())


def _rows(principal: Principal) -> QuerySet[AuditEntry]:
    return AuditEntry.objects.filter(owner=owner_of(principal), action__in=list(KINDS))


def _memories(principal: Principal, row: AuditEntry) -> list[Memory]:
    by_id = {str(memory.pk): memory for memory in own(principal).filter(pk__in=row.target_ids)}
    return [by_id[key] for key in row.target_ids if key in by_id]


def _event(row: AuditEntry, memories: Sequence[Memory] = ()) -> Event:
    return Event(event_id(row), KINDS[row.action], row.at, row.duration_ms, memories)
