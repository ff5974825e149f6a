"""Many changes in one request: each is carried out, or refused, as if it were sent alone."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from django.db import transaction
from django.utils.translation import gettext as _

from engine.errors import EngineError
from memory.errors import Invalid, ServiceError, from_engine
from memory.models import ApiKey, Memory
from memory.principal import Principal
from memory.services import access, audit, memories
from memory.services.audit import Act
from memory.services.backends import truth
from memory.services.drafts import MemoryDraft, check
from memory.services.webhooks import events

MAX_ITEMS: Final = 1000
CREATED, UPDATED, DELETED, PURGED, FAILED = "created", "updated", "deleted", "purged", "failed"


@dataclass(frozen=True, slots=True)
class Create:
    """Store a draft, as ``memories.create``."""

    draft: MemoryDraft
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """Change fields of a memory, as ``memories.update``."""

    memory_id: str
    changes: Mapping[str, Any]
    revision: int | None = None


@dataclass(frozen=True, slots=True)
class Remove:
    """Put a memory in the trash or erase it, as ``memories.delete``."""

    memory_id: str
    purge: bool = False


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An item that the edge could not read: it has its place among the results."""

    error: ServiceError


Item = Create | Change | Remove | Unreadable


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one item: ``created``, ``updated``, ``deleted``, ``purged`` or ``failed``."""

    result: str
    memory_id: str | None = None
    revision: int | None = None
    error: ServiceError | None = None


def carry_out(principal: Principal, items: Sequence[Item]) -> list[Outcome]:
    """Carry out items in order, each in a savepoint; the outcomes in the same order.

    Memories to store beside one another share a savepoint while all of them can be stored. One
    item that is refused leaves the others as they are. When the database itself fails, nothing is
    kept. While another backend holds the truth it is told of each item before our tables are, so
    that there is a transaction for each item. Raises ``Forbidden`` without the scope ``write``,
    ``Invalid`` for no item or more than 1,000.
    """
    access.require(principal, "write")
    check_count(items)
    started = time.perf_counter()
    outcomes: list[Outcome] = []
    acts: list[Act] = []
    with _together():
        if not truth.is_elsewhere():
            _lock_owners(principal, items)
        for alike in _runs(items):
            outcomes.extend(
                _stored_at_once(principal, alike, acts)
                or [_one(principal, item, acts) for item in alike]
            )
        _record(principal, outcomes, acts, took_ms=(time.perf_counter() - started) * 1000)
    return outcomes


def check_count(items: Sequence[object]) -> None:
    """Raise ``Invalid`` for what is no batch: no item, or more than 1,000."""
    if not 1 <= len(items) <= MAX_ITEMS:
        message = _("A batch has from 1 to %(most)s items.") % {"most": MAX_ITEMS}
        raise Invalid(message, fields={"items": message})


@contextmanager
def _together() -> Iterator[None]:
    if truth.is_elsewhere():
        yield
        return
    with transaction.atomic(), events.together():
        yield


def _runs(items: Sequence[Item]) -> Iterator[list[Item]]:
    """Items as they come, those beside one another that store for one owner together."""
    for is_new, group in groupby(items, key=_stores_for):
        if is_new:
            yield list(group)
        else:
            yield from ([item] for item in group)


def _stores_for(item: Item) -> tuple[str | None] | None:
    return (access.reference_of(item.owner),) if isinstance(item, Create) else None


def _stored_at_once(principal: Principal, items: Sequence[Item], acts: list[Act]) -> list[Outcome]:
    """Store drafts of one owner in a few statements; nothing unless all of them can be stored."""
    drafts = [item.draft for item in items if isinstance(item, Create)]
    first = items[0]
    if len(drafts) < 2 or not isinstance(first, Create) or truth.is_elsewhere():
        return []
    try:
        owner = access.write_owner(principal, first.owner)
        for draft in drafts:
            check(draft)
            if draft.is_shared:
                access.require(principal, "manage")
        with transaction.atomic(), events.undoable():
            stored = memories.store_many(principal, owner, drafts)
    except ServiceError:
        return []  # one by one, each is told what is wrong with it
    acts.append(Act("memory.create", owner, tuple(str(item.memory.pk) for item in stored)))
    return [
        Outcome(CREATED if item.created else UPDATED, str(item.memory.pk), item.memory.revision)
        for item in stored
    ]


def _one(principal: Principal, item: Item, acts: list[Act]) -> Outcome:
    try:
        with audit.gathered() as done, events.undoable():
            outcome = _done(principal, item)
        acts.extend(done)
        return outcome
    except ServiceError as error:
        refused = error
    except EngineError as error:
        refused = from_engine(error)
    return Outcome(FAILED, getattr(item, "memory_id", None), error=refused)


def _done(principal: Principal, item: Item) -> Outcome:
    if isinstance(item, Unreadable):
        raise item.error
    if isinstance(item, Create):
        memory, is_new = memories.create(principal, item.draft, owner=item.owner)
        return Outcome(CREATED if is_new else UPDATED, str(memory.pk), memory.revision)
    if isinstance(item, Change):
        memory = memories.update(
            principal, item.memory_id, item.changes, expected_revision=item.revision
        )
        return Outcome(UPDATED, str(memory.pk), memory.revision)
    memories.delete(principal, item.memory_id, purge=item.purge)
    return Outcome(PURGED if item.purge else DELETED, item.memory_id)


def _lock_owners(principal: Principal, items: Sequence[Item]) -> None:
    """Take the owners that a batch is about in one order: two batches must not wait for each
    other's rows."""
    if principal.owner is not None and not access.may_name_owners(principal):
        owners = [access.write_owner(principal, None)]
    else:
        owners = list(_named(principal, items))
    for owner in sorted(set(owners), key=lambda owner: owner.pk):
        memories.lock_owner(owner)


def _named(principal: Principal, items: Sequence[Item]) -> Iterator[ApiKey]:
    """Owners that a manager's items name, or whose memories they name."""
    ids: list[uuid.UUID] = []
    references: set[str | None] = set()
    for item in items:
        if isinstance(item, Create):
            references.add(access.reference_of(item.owner))
        elif isinstance(item, Change | Remove) and (found := _uuid(item.memory_id)):
            ids.append(found)
    for reference in references:
        try:
            yield access.write_owner(principal, reference)
        except ServiceError:
            continue  # the items that name it are refused each in its place
    yield from ApiKey.objects.filter(
        pk__in=Memory.objects.filter(pk__in=ids).order_by().values("api_key")
    )


def _uuid(text: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(text)
    except ValueError:
        return None


def _record(
    principal: Principal, outcomes: Sequence[Outcome], acts: Sequence[Act], *, took_ms: float
) -> None:
    """One row for all that was changed; its owner where there is but one."""
    if not acts:
        return
    owners = {act.owner for act in acts}
    counts = {
        result: sum(outcome.result == result for outcome in outcomes)
        for result in (CREATED, UPDATED, DELETED, PURGED, FAILED)
    }
    audit.record(
        principal,
        "memory.batch",
        owner=owners.pop() if len(owners) == 1 else None,
        ids=[target for act in acts for target in act.ids],
        duration_ms=took_ms,
        detail=counts,
    )
