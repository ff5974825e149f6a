"""Browsing: pages of memories with their state, sessions and the figures above the list."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db.models import Count, Q, QuerySet, Sum
from django.utils.translation import gettext as _

from memory import wiring
from memory.clock import now
from memory.errors import Invalid
from memory.models import Memory, Passage, RetrievalCount, VectorIndex, VectorMark
from memory.principal import Principal
from memory.services import access, lifetimes, memories, metadata_filters, row_cache
from memory.services.backends import truth

MAX_LIMIT: Final = 200
MAX_WORDS: Final = 1024
"""Characters of ``q``; databases refuse patterns that are much longer."""
STATES: Final = ("live", "hidden", "archived", "trash", "all", "kept")
"""``kept`` is live or archived: what an export takes."""
ORDERS: Final = ("created_at", "updated_at", "key", "tokens", "type")


@dataclass(frozen=True, slots=True)
class MemoryFilter:
    """What to list. ``owner`` is a public id or a name; empty means the caller's own, or every
    owner for a studio user. ``offset`` wins over ``page``; a leading ``-`` in ``order`` turns it.
    """

    owner: str | None = None
    type: str | None = None
    session: str | None = None
    q: str = ""
    state: str = "live"
    limit: int = 50
    offset: int | None = None
    page: int = 1
    order: str = "-created_at"
    metadata: Mapping[str, Any] | None = None
    """A filter over metadata (``metadata_filters``)."""


@dataclass(frozen=True, slots=True)
class MemoryRow:
    """One memory as lists show it.

    ``index_state`` is ``indexed``, ``pending``, ``failed`` or ``off``; ``hidden_reason`` is why
    retrieval leaves a live row out (``expired``, ``retention``), or empty.
    """

    memory: Memory
    access_count: int
    last_accessed_at: datetime | None
    index_state: str
    hidden_reason: str

    @property
    def owner_name(self) -> str:
        """Name of the owning API key."""
        return self.memory.api_key.name


@dataclass(frozen=True, slots=True)
class MemoryPage:
    """One page and where it lies."""

    rows: list[MemoryRow]
    total: int
    page: int
    limit: int
    total_pages: int
    offset: int


@dataclass(frozen=True, slots=True)
class Stats:
    """Figures of an owner (or of all): ``hit_rate`` is None before the first retrieval."""

    total: int
    by_type: dict[str, int]
    tokens_used: int
    hit_rate: float | None
    cache_hits: int
    cache_misses: int
    pending_index: int
    hidden: int


def list_page(principal: Principal, wanted: MemoryFilter) -> MemoryPage:
    """One page of memories; a page beyond the end is empty. A constant number of queries.

    Newest live memories are listed as the primary backend has them; anything else, and all while
    it fails, from its mirror here.
    """
    access.require(principal, "read")
    _check(wanted)
    is_plain = wanted.state == "live" and wanted.order == "-created_at" and not wanted.metadata
    if truth.is_elsewhere() and is_plain:
        from memory.services.backends import listed

        page = listed.page(principal, wanted)
        if page is not None:
            return page
    return local_page(principal, wanted)


def selected(principal: Principal, wanted: MemoryFilter) -> QuerySet[Memory]:
    """Every memory that a filter matches, on whatever page, in no order yet."""
    access.require(principal, "read")
    _check(wanted)
    return _filtered(principal, wanted)


def local_page(principal: Principal, wanted: MemoryFilter) -> MemoryPage:
    """One page of what our own tables hold."""
    rows = _filtered(principal, wanted)
    total = rows.count()
    offset = wanted.offset if wanted.offset is not None else (wanted.page - 1) * wanted.limit
    name = wanted.order.removeprefix("-")
    sign = "-" if wanted.order.startswith("-") else ""
    found = rows.order_by(f"{sign}{name}", f"{sign}id")[offset : offset + wanted.limit]
    return page_of(_rows(found), total, wanted)


def page_of(rows: list[MemoryRow], total: int, wanted: MemoryFilter) -> MemoryPage:
    """The page that holds these rows of all."""
    offset = wanted.offset if wanted.offset is not None else (wanted.page - 1) * wanted.limit
    return MemoryPage(
        rows=rows,
        total=total,
        page=offset // wanted.limit + 1,
        limit=wanted.limit,
        total_pages=-(-total // wanted.limit),
        offset=offset,
    )


def rows_of(ids: Sequence[uuid.UUID]) -> list[MemoryRow]:
    """Memories as lists show them, in this order; those that are gone are left out."""
    rows = _rows(Memory.objects.filter(pk__in=ids).select_related("api_key", "use"))
    by_id = {row.memory.pk: row for row in rows}
    return [by_id[key] for key in ids if key in by_id]


def kinds(principal: Principal, wanted: MemoryFilter) -> dict[str, int]:
    """How many memories of each type a filter matches."""
    access.require(principal, "read")
    counted = _filtered(principal, wanted).order_by().values("type").annotate(count=Count("pk"))
    return {str(item["type"]): int(item["count"]) for item in counted}


def row(principal: Principal, memory_id: str | uuid.UUID) -> MemoryRow:
    """One memory as lists show it, whatever its state."""
    memory = memories.get(principal, memory_id, trashed=True)
    return _rows(Memory.objects.filter(pk=memory.pk).select_related("api_key", "use"))[0]


def sessions(principal: Principal, owner: str | None = None) -> list[str]:
    """Names of the sessions with live memories, at most 200, in order."""
    access.require(principal, "read")
    rows = _owned(principal, owner).filter(lifetimes.live()).exclude(session_id="")
    return list(rows.order_by("session_id").values_list("session_id", flat=True).distinct()[:200])


def stats(principal: Principal, owner: str | None = None) -> Stats:
    """Figures over the live rows of an owner, whatever the other filters."""
    access.require(principal, "read")
    key = access.read_owner(principal, owner)
    rows, counted = Memory.objects.filter(lifetimes.live()), RetrievalCount.objects.all()
    # Rows in the trash have no passage, so these are the live ones.
    pending = VectorMark.objects.filter(
        index__state=VectorIndex.State.ACTIVE, passage__is_archived=False
    )
    if key is not None:
        rows, counted = rows.filter(api_key=key), counted.filter(owner=key)
        pending = pending.filter(passage__owner=key)
    hidden = Count("pk", filter=lifetimes.hidden(wiring.settings(), now()))
    kinds = (
        rows.order_by()
        .values("type")
        .annotate(count=Count("pk"), tokens=Sum("tokens"), hidden=hidden)
    )
    by_type = {str(item["type"]): item for item in kinds}
    asked = counted.aggregate(queries=Sum("queries"), answered=Sum("answered"))
    read = row_cache.CACHE.figures(key.pk if key else None)
    return Stats(
        total=sum(item["count"] for item in by_type.values()),
        by_type={name: int(item["count"]) for name, item in by_type.items()},
        tokens_used=sum(item["tokens"] for item in by_type.values()),
        hit_rate=asked["answered"] / asked["queries"] if asked["queries"] else None,
        cache_hits=read.hits,
        cache_misses=read.misses,
        pending_index=pending.count(),
        hidden=sum(item["hidden"] for item in by_type.values()),
    )


def _check(wanted: MemoryFilter) -> None:
    problems: dict[str, str] = {}
    if not 1 <= wanted.limit <= MAX_LIMIT:
        problems["limit"] = _("A number from 1 to %(most)s.") % {"most": MAX_LIMIT}
    if wanted.page < 1:
        problems["page"] = _("Pages start at 1.")
    if wanted.offset is not None and wanted.offset < 0:
        problems["offset"] = _("An offset cannot be negative.")
    if len(wanted.q.strip()) > MAX_WORDS:
        problems["q"] = _("At most %(count)s characters.") % {"count": MAX_WORDS}
    if wanted.state not in STATES:
        problems["state"] = _("One of: %(choices)s.") % {"choices": ", ".join(STATES)}
    if wanted.order.removeprefix("-") not in ORDERS:
        problems["order"] = _("One of: %(choices)s.") % {"choices": ", ".join(ORDERS)}
    if problems:
        raise Invalid(_("The list cannot be shown like that."), fields=problems)


def _owned(principal: Principal, owner: str | None) -> QuerySet[Memory]:
    key = access.read_owner(principal, owner)
    return Memory.objects.all() if key is None else Memory.objects.filter(api_key=key)


def _filtered(principal: Principal, wanted: MemoryFilter) -> QuerySet[Memory]:
    rows = _owned(principal, wanted.owner).filter(_state(wanted.state))
    if wanted.type:
        rows = rows.filter(type=wanted.type)
    if wanted.session:
        rows = rows.filter(session_id=wanted.session)
    if wanted.q.strip():
        # The ORM escapes % and _, so that nothing typed is a wildcard.
        words = wanted.q.strip().replace("\0", "")
        rows = rows.filter(Q(content__icontains=words) | Q(key__icontains=words))
    if wanted.metadata:
        rows = rows.filter(metadata_filters.condition(wanted.metadata))
    return rows.select_related("api_key", "use")


def _state(state: str) -> Q:
    if state == "trash":
        return Q(trashed_at__isnull=False)
    if state == "archived":
        return Q(archived_at__isnull=False, trashed_at__isnull=True)
    if state == "hidden":
        return lifetimes.live() & lifetimes.hidden(wiring.settings(), now())
    if state == "kept":
        return Q(trashed_at__isnull=True)
    return Q() if state == "all" else lifetimes.live()


def _rows(found: QuerySet[Memory]) -> list[MemoryRow]:
    settings, moment = wiring.settings(), now()
    memories = list(found)
    waiting = _waiting([memory.pk for memory in memories])
    answer: list[MemoryRow] = []
    for memory in memories:
        use = getattr(memory, "use", None)
        answer.append(
            MemoryRow(
                memory=memory,
                access_count=use.access_count if use else 0,
                last_accessed_at=use.last_accessed_at if use else None,
                index_state=_index_state(memory, waiting),
                hidden_reason=lifetimes.hidden_reason(memory, settings=settings, moment=moment),
            )
        )
    return answer


def _waiting(ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, str] | None:
    """Error codes (perhaps empty) of memories that wait for a vector; None without an index."""
    index = VectorIndex.objects.filter(state=VectorIndex.State.ACTIVE).first()
    if index is None:
        return None
    # From the memories: a planner without statistics would walk every mark of the index.
    pieces = Passage.objects.filter(memory__in=ids).values("pk")
    marks = index.marks.filter(passage__in=pieces).order_by("error")
    return dict(marks.values_list("passage__memory", "error"))


def _index_state(memory: Memory, waiting: Mapping[uuid.UUID, str] | None) -> str:
    if waiting is None or memory.trashed_at is not None:
        return "off"
    if memory.pk not in waiting:
        return "indexed"
    return "failed" if waiting[memory.pk] else "pending"
