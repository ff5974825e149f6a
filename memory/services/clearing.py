"""Forgetting many memories of an owner at once; all of them go to the trash."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db import transaction
from django.db.models import QuerySet

from memory.clock import now
from memory.models import ApiKey, Memory
from memory.principal import Principal
from memory.services import access, audit, memories, passages
from memory.services.backends import copies
from memory.services.metadata_filters import RowTest
from memory.services.webhooks import events

BATCH: Final = 500
"""Memories of one transaction: others can write between two of them."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which memories: of an owner (public id or name; None is the caller's own), of a type,
    created before a time, those that a test picks."""

    owner: str | None = None
    type: str | None = None
    created_before: datetime | None = None
    picked: RowTest | None = None


def clear(principal: Principal, wanted: Wanted, *, is_cancelled: Callable[[], bool] = bool) -> int:
    """Put every memory that is wanted in the trash, archived ones too; how many went.

    ``is_cancelled`` is asked between batches; what went before stays in the trash.
    """
    access.require(principal, "write")
    owner = access.write_owner(principal, wanted.owner)
    count = 0
    while not is_cancelled():
        done = _clear_batch(principal, owner, wanted)
        count += done
        if done < BATCH:
            break
    return count


def _clear_batch(principal: Principal, owner: ApiKey, wanted: Wanted) -> int:
    # Other backends are told by the job: asking one for each memory would hold the rest up.
    with transaction.atomic(), copies.deferred():
        memories.lock_owner(owner)
        rows = _rows(owner, wanted).select_for_update().order_by("pk")
        batch = list(rows.only("pk")[:BATCH])
        if not batch:
            return 0
        ids = [row.pk for row in batch]
        passages.remove(batch)
        copies.removed(ids)
        Memory.objects.filter(pk__in=ids).update(trashed_at=now())
        events.removed(owner.pk, ids)
        audit.record(principal, "memory.clear", owner=owner, ids=ids)
    return len(batch)


def _rows(owner: ApiKey, wanted: Wanted) -> QuerySet[Memory]:
    rows = Memory.objects.filter(api_key=owner, trashed_at__isnull=True)
    if wanted.type is not None:
        rows = rows.filter(type=wanted.type)
    if wanted.created_before is not None:
        rows = rows.filter(created_at__lt=wanted.created_before)
    if wanted.picked is not None:
        rows = rows.filter(wanted.picked.condition(""))
    return rows
