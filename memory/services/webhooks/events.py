"""What happened, noted for the webhooks that want to hear of it: the outbox.

Functions are called inside the transaction of the change. What is rolled back was never noted;
what is committed waits in its rows, whatever becomes of the process.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

from memory import jobs, subscriptions
from memory.clock import now
from memory.models import Job, Memory, WebhookDelivery

CREATED: Final = "memory.created"
UPDATED: Final = "memory.updated"
DELETED: Final = "memory.deleted"
RESTORED: Final = "memory.restored"
COMPACTED: Final = "memory.compacted"
JOB_FINISHED: Final = "job.finished"
EVENTS: Final = (CREATED, UPDATED, DELETED, RESTORED, COMPACTED, JOB_FINISHED)
TEST: Final = "webhook.test"
MOST_ITEMS: Final = 100
"""Items of one delivery: an import tells of its memories a hundred at a time."""
KIND: Final = "webhook"
"""Kind of the job that sends."""

Item = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Happened:
    """One event of one owner, about some items."""

    event: str
    owner: int | None
    items: tuple[Item, ...]


_gathering: ContextVar[list[Happened] | None] = ContextVar("happened", default=None)


@contextmanager
def together() -> Iterator[None]:
    """What happens inside is noted at its end, in as few deliveries as can be; what fails is not.

    Use it inside the transaction that all of it belongs to.
    """
    found: list[Happened] = []
    token = _gathering.set(found)
    try:
        yield
    finally:
        _gathering.reset(token)
    outer = _gathering.get()
    if outer is not None:
        outer.extend(found)
    elif found:
        _note(found)


@contextmanager
def undoable() -> Iterator[None]:
    """Within ``together``: when this part fails, what it noted is not told."""
    outer = _gathering.get()
    before = len(outer or ())
    try:
        yield
    except BaseException:
        if outer is not None:
            del outer[before:]
        raise


def told(event: str, rows: Sequence[Memory]) -> None:
    """Note what happened to memories, whose owner and revision are at hand."""
    if not rows or not subscriptions.current():
        return
    for owner in dict.fromkeys(row.api_key_id for row in rows):
        own = (row for row in rows if row.api_key_id == owner)
        happened(event, owner, ({"id": str(row.pk), "revision": row.revision} for row in own))


def removed(owner: int, ids: Iterable[uuid.UUID]) -> None:
    """Note that memories of an owner went to the trash, or for good."""
    happened(DELETED, owner, ({"id": str(value)} for value in ids))


def finished(job: Job) -> None:
    """Note the end of a job that somebody asked for; not of those that follow writes."""
    if job.requested_by == jobs.UNASKED or job.kind == KIND:
        return
    item = {"id": str(job.pk), "kind": job.kind, "state": job.state, "errorCode": job.error_code}
    happened(JOB_FINISHED, job.owner_id, [item])


def happened(event: str, owner: int | None, items: Iterable[Item]) -> None:
    """Note an event of an owner, unless nobody wants to hear of it."""
    if not any(one.wants(event, owner) for one in subscriptions.current()):
        return
    one = Happened(event, owner, tuple(items))
    outer = _gathering.get()
    if outer is not None:
        outer.append(one)
    elif one.items:
        _note([one])


def _note(found: Iterable[Happened]) -> None:
    """Write one row for each webhook and hundred items, and have them sent after the commit."""
    moment = now()
    rows: list[WebhookDelivery] = []
    waiting: set[uuid.UUID] = set()
    wanted = subscriptions.current()
    for event, owner, items in _packed(found):
        for one in wanted:
            if not one.wants(event, owner):
                continue
            if one.paused_until is None or one.paused_until <= moment:
                waiting.add(one.webhook)
            rows.extend(
                _row(one.webhook, Happened(event, owner, tuple(items[start : start + MOST_ITEMS])))
                for start in range(0, len(items), MOST_ITEMS)
            )
    WebhookDelivery.objects.bulk_create(rows)
    for webhook in sorted(waiting):
        send_soon(webhook)


def send_soon(webhook: uuid.UUID) -> Job:
    """Have the job of a webhook send what waits, once the transaction commits."""
    return jobs.enqueue(
        jobs.Order(
            KIND,
            {"webhook": str(webhook)},
            dedupe_key=f"{KIND}:{webhook}",
            requested_by=jobs.UNASKED,
        )
    )


def _row(webhook: uuid.UUID, one: Happened) -> WebhookDelivery:
    return WebhookDelivery(
        webhook_id=webhook,
        event=one.event,
        owner_id=one.owner,
        items=list(one.items),
        count=len(one.items),
        created_at=now(),
        due_at=now(),
    )


def _packed(found: Iterable[Happened]) -> Iterator[tuple[str, int | None, list[Item]]]:
    """Events alike beside one another, as long as no memory is told of out of its order."""
    groups: dict[tuple[str, int | None], list[Item]] = {}
    place: dict[str, tuple[str, int | None]] = {}
    for one in found:
        kind = (one.event, one.owner)
        for item in one.items:
            if place.setdefault(item["id"], kind) != kind:
                yield from _flat(groups)
                groups, place = {}, {item["id"]: kind}
            groups.setdefault(kind, []).append(item)
    yield from _flat(groups)


def _flat(
    groups: Mapping[tuple[str, int | None], list[Item]],
) -> Iterator[tuple[str, int | None, list[Item]]]:
    for (event, owner), items in groups.items():
        yield event, owner, items


jobs.when_ended(finished)
