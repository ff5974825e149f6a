"""Reading receipts: which chats there were, and what one of them did."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from memory.clock import now
from memory.errors import Invalid, NotFound
from memory.models import Memory, Trace
from memory.principal import Principal
from memory.services import access, audit
from memory.services.gateway import settings
from memory.services.gateway.planning import State

MAX_LIMIT: Final = 200
STATES: Final = tuple(state.value for state in State)
BATCH: Final = 1000


@dataclass(frozen=True, slots=True)
class TraceFilter:
    """What to list; ``since`` is included, ``until`` is not."""

    owner: str | None = None
    memory: str = ""
    session: str = ""
    since: datetime | None = None
    until: datetime | None = None
    limit: int = 50
    page: int = 1


@dataclass(frozen=True, slots=True)
class TracePage:
    """One page, newest first."""

    rows: list[Trace]
    total: int
    page: int
    limit: int

    @property
    def total_pages(self) -> int:
        """How many pages there are."""
        return -(-self.total // self.limit)


@dataclass(frozen=True, slots=True)
class TraceView:
    """One receipt with those of its memories that are still there, by id."""

    trace: Trace
    memories: dict[str, Memory]


def list_page(principal: Principal, wanted: TraceFilter) -> TracePage:
    """One page of receipts; a page beyond the end is empty.

    A key sees its own, whatever owner it names. Raises ``Invalid``.
    """
    access.require(principal, "read")
    is_known = not wanted.memory or wanted.memory in STATES
    if not 1 <= wanted.limit <= MAX_LIMIT or wanted.page < 1 or not is_known:
        raise Invalid(_("The list cannot be shown like that."))
    rows = _filtered(principal, wanted)
    first = (wanted.page - 1) * wanted.limit
    found = list(rows.order_by("-at", "-id")[first : first + wanted.limit])
    return TracePage(found, rows.count(), wanted.page, wanted.limit)


def get(principal: Principal, trace_id: str | uuid.UUID) -> TraceView:
    """One receipt. Raises ``NotFound``, also for what another owner holds."""
    access.require(principal, "read")
    try:
        wanted = uuid.UUID(str(trace_id))
    except ValueError:
        raise _missing() from None
    rows = Trace.objects.select_related("owner")
    if not access.may_name_owners(principal):
        rows = rows.filter(owner=principal.owner)
    trace = rows.filter(pk=wanted).first()
    if trace is None:
        raise _missing()
    ids = {*(hit["id"] for hit in trace.retrieved), *trace.injected, *trace.learnt}
    memories = _memories(principal, trace, ids)
    if memories or trace.text:
        audit.record(principal, "trace.read", owner=trace.owner, ids=memories)
    return TraceView(trace, memories)


def learnt(trace_id: uuid.UUID, ids: list[str]) -> None:
    """Add memories that were learnt from a chat to its receipt."""
    trace = Trace.objects.filter(pk=trace_id).only("learnt").first()
    if trace is not None and ids:
        trace.learnt = [*trace.learnt, *(one for one in ids if one not in trace.learnt)]
        trace.save(update_fields=["learnt"])


def prune() -> int:
    """Remove receipts that are older than the settings keep them; how many."""
    oldest = now() - timedelta(days=settings.get().trace_days)
    old = Trace.objects.filter(at__lt=oldest).order_by("at").values_list("pk", flat=True)
    return Trace.objects.filter(pk__in=list(old[:BATCH])).delete()[0]


def forget_texts(owner_ids: list[int]) -> None:
    """Forget what receipts of owners hold of texts: something of theirs was erased."""
    Trace.objects.filter(owner__in=owner_ids, text__isnull=False).update(text=None)


def _filtered(principal: Principal, wanted: TraceFilter) -> QuerySet[Trace]:
    rows = Trace.objects.select_related("owner")
    if not access.may_name_owners(principal):
        rows = rows.filter(owner=principal.owner)
    elif reference := access.reference_of(wanted.owner):
        rows = rows.filter(owner=access.find(reference))
    bounds: dict[str, Any] = {
        "memory": wanted.memory,
        "session_id": wanted.session,
        "at__gte": wanted.since,
        "at__lt": wanted.until,
    }
    return rows.filter(**{name: value for name, value in bounds.items() if value})


def _memories(principal: Principal, trace: Trace, ids: set[str]) -> dict[str, Memory]:
    """Those that the reader may see: of the chat's owner, or shared."""
    known = [one for one in ids if _is_uuid(one)]
    rows = Memory.objects.filter(pk__in=known, trashed_at__isnull=True)
    found = rows.select_related("api_key")
    return {
        str(row.pk): row
        for row in found
        if row.api_key_id == trace.owner_id or row.is_shared or access.may_name_owners(principal)
    }


def _is_uuid(text: str) -> bool:
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True


def _missing() -> NotFound:
    return NotFound(_("No such receipt."))
