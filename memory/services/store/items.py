"""Putting, getting, finding and forgetting items."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from engine.keyword.limits import MAX_LIMIT, shorten_query
from memory.clock import now
from memory.errors import Invalid
from memory.models import ApiKey, Memory
from memory.principal import Principal
from memory.services import access, audit, lifetimes, memories, passages, retrieval
from memory.services.backends import copies
from memory.services.drafts import MemoryDraft, is_storable
from memory.services.retrieval import RetrieveRequest
from memory.services.store import places
from memory.services.store.filters import MEMBER, Items
from memory.services.store.places import Below, Namespace, Place
from memory.services.store.values import Index, text_of

MAX_TTL: Final = 10 * 366 * 24 * 60
"""Minutes."""


@dataclass(frozen=True, slots=True)
class Item:
    """An item as clients see it; ``score`` when a query found it."""

    place: Place
    value: Mapping[str, Any]
    created_at: datetime
    updated_at: datetime
    score: float | None = None


@dataclass(frozen=True, slots=True)
class ItemSearch:
    """What to find: below a namespace, with a filter, by a query or (empty) newest change first.

    ``refreshes`` starts the time to live of what is found anew.
    """

    below: Namespace = ()
    sent: Mapping[str, Any] | None = None
    query: str = ""
    limit: int = 10
    offset: int = 0
    refreshes: bool = True


@dataclass(frozen=True, slots=True)
class Listing:
    """Which namespaces to list; labels below ``max_depth`` are cut off."""

    prefix: Namespace = ()
    suffix: Namespace = ()
    max_depth: int | None = None
    limit: int = 100
    offset: int = 0


def put(
    principal: Principal,
    place: Place,
    value: Mapping[str, Any],
    *,
    index: Index = None,
    ttl: float | None = None,
) -> None:
    """Store an item, or replace the one at its place. ``ttl`` is in minutes."""
    access.require(principal, "write")
    text = text_of(value, index)
    held: dict[str, Any] = {"value": dict(value)}
    if ttl is not None:
        if not 0 < ttl <= MAX_TTL:
            message = _("A time to live is a number of minutes above 0, ten years at most.")
            raise Invalid(message, fields={"ttl": message})
        held["ttl"] = ttl
    if text.field:
        held["field"] = text.field
    if not text.is_indexed:
        held["indexed"] = False
    draft = MemoryDraft(
        content=text.text,
        key=place.memory_key,
        # Namespace and key are an address; as a title they would be searched.
        metadata={"title": "", MEMBER: held},
        expires_at=now() + timedelta(minutes=ttl) if ttl is not None else None,
    )
    memories.create(principal, draft)


def get(principal: Principal, place: Place, *, refreshes: bool = True) -> Item | None:
    """The item at a place; None when there is none (any more)."""
    access.require(principal, "read")
    row = _own(principal).filter(key=place.memory_key).first()
    if row is None:
        return None
    if refreshes:
        _refresh(principal, [row])
    audit.record(principal, "memory.read", owner=_owner(principal), ids=[row.pk])
    return _item(row)


def delete(principal: Principal, place: Place) -> None:
    """Put the item at a place in the trash, if there is one."""
    access.require(principal, "write")
    row = _own(principal, with_expired=True).filter(key=place.memory_key).first()
    if row is not None:
        memories.delete(principal, row.pk)


def search(principal: Principal, asked: ItemSearch) -> list[Item]:
    """Items below a namespace. A query finds at most 100, ``offset`` included.

    Raises ``Invalid`` for a filter that cannot be carried out.
    """
    access.require(principal, "read")
    wanted = Items(Below(asked.below), asked.sent or {}, is_indexed=bool(asked.query.strip()))
    found = (
        _by_query(principal, asked, wanted)
        if asked.query.strip()
        else _newest(principal, asked, wanted)
    )
    if asked.refreshes:
        _refresh(principal, [row for row, _score in found])
    return [_item(row, score) for row, score in found]


def _newest(
    principal: Principal, asked: ItemSearch, wanted: Items
) -> list[tuple[Memory, float | None]]:
    rows = _own(principal).filter(wanted.condition("")).order_by("-updated_at", "-id")
    found = list(rows[asked.offset : asked.offset + asked.limit])
    if found:
        ids = [row.pk for row in found]
        audit.record(principal, "memory.list", owner=_owner(principal), ids=ids)
    return [(row, None) for row in found]


def _by_query(
    principal: Principal, asked: ItemSearch, wanted: Items
) -> list[tuple[Memory, float | None]]:
    if not is_storable(asked.query):
        message = _("This holds characters that are not valid text.")
        raise Invalid(message, fields={"query": message})
    if asked.offset >= MAX_LIMIT:
        return []
    request = RetrieveRequest(
        query=shorten_query(asked.query),
        limit=min(asked.offset + asked.limit, MAX_LIMIT),
        max_tokens=sys.maxsize,
        filters=wanted,
    )
    view = retrieval.retrieve(principal, request, purpose="client")
    hits = view.retrieval.hits[asked.offset :]
    return [(view.memories[hit.passage.parent], hit.score) for hit in hits]


def namespaces(principal: Principal, asked: Listing) -> list[Namespace]:
    """The namespaces that hold items, in order."""
    access.require(principal, "read")
    # A pattern may begin with any label: then every item is looked at.
    sure = asked.prefix if places.WILDCARD not in asked.prefix else ()
    keys = _own(principal).filter(Below(sure).condition("")).order_by()
    found = {places.read(key).namespace for key in keys.values_list("key", flat=True)}
    kept = {
        namespace[: asked.max_depth]
        for namespace in found
        if places.matches(namespace, asked.prefix)
        and places.matches(namespace, asked.suffix, at_end=True)
    }
    return sorted(kept)[asked.offset : asked.offset + asked.limit]


def _owner(principal: Principal) -> ApiKey:
    return access.read_owner(principal, None) or access.default_key()


def _own(principal: Principal, *, with_expired: bool = False) -> QuerySet[Memory]:
    """The caller's memories that are items now."""
    rows = Memory.objects.filter(lifetimes.live(), Below().condition(""), api_key=_owner(principal))
    if with_expired:
        return rows
    return rows.filter(Q(expires_at__isnull=True) | Q(expires_at__gt=now()))


def _refresh(principal: Principal, rows: Sequence[Memory]) -> None:
    """Start the times to live of items anew, where the caller may write."""
    due = {row.pk: ttl for row in rows if (ttl := _ttl(row)) is not None}
    if not due or not principal.may("write"):
        return
    with transaction.atomic():
        if len(due) > 1:
            memories.lock_owner(_owner(principal))
        locked = Memory.objects.select_for_update().filter(lifetimes.live(), pk__in=list(due))
        changed = list(locked.order_by("pk"))
        for row in changed:
            row.expires_at = now() + timedelta(minutes=due[row.pk])
        Memory.objects.bulk_update(changed, ["expires_at"])
        passages.sync(changed)
        copies.changed([row.pk for row in changed])


def _held(row: Memory) -> Mapping[str, Any]:
    held = row.metadata.get(MEMBER)
    return held if isinstance(held, Mapping) else {}


def _ttl(row: Memory) -> float | None:
    ttl = _held(row).get("ttl")
    if isinstance(ttl, bool) or not isinstance(ttl, int | float):
        return None
    return ttl if 0 < ttl <= MAX_TTL else None


def _item(row: Memory, score: float | None = None) -> Item:
    """An item. A text that was changed in the studio is the value's, where it is one member."""
    held = _held(row)
    value = held.get("value")
    shown = dict(value) if isinstance(value, Mapping) else {"content": row.content}
    # Whoever writes metadata over REST writes there what it likes.
    if isinstance(name := held.get("field"), str) and name in shown:
        shown[name] = row.content
    return Item(places.read(row.key), shown, row.created_at, row.updated_at, score)
