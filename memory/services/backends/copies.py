"""The id map: what memories are called elsewhere, and what is still to be told there.

Functions that change it run inside the transaction of the change they follow.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from memory import backend_wiring, jobs
from memory.backend_wiring import LOCAL
from memory.models import BackendCopy, Memory

FOLLOW: Final = "backend-follow"
COPY: Final = "backend-copy"
LATER: Final = "*later*"


@dataclass(frozen=True, slots=True)
class Own:
    """The id that a backend gave a memory. ``record_id`` is empty when it has it no more."""

    backend: str
    record_id: str = ""


_told: ContextVar[str] = ContextVar("told", default="")


@contextmanager
def told(own: Own | None) -> Iterator[None]:
    """What is changed inside is what this backend was told or has told: it need not hear it."""
    token = _told.set(own.backend if own is not None else _told.get())
    try:
        yield
    finally:
        _told.reset(token)


@contextmanager
def deferred() -> Iterator[None]:
    """Changes made inside are told to every backend later, also to the primary."""
    token = _told.set(LATER)
    try:
        yield
    finally:
        _told.reset(token)


def are_deferred() -> bool:
    """Whether the primary is to be told later only."""
    return _told.get() == LATER


class CopyMap:
    """The id map as the manager asks it (``engine.backends.manager.IdMap``)."""

    def own_id(self, backend: str, memory_id: str) -> str | None:
        """Our tables call a memory what it is; others what they told us."""
        if backend == LOCAL:
            return memory_id
        found = BackendCopy.objects.filter(backend=backend, memory_id=uuid.UUID(memory_id))
        return (
            found.exclude(pending=BackendCopy.Pending.DELETE)
            .values_list("own_id", flat=True)
            .first()
        )

    def follow(self, backend: str, memory_id: str, *, deleted: bool) -> None:
        """Nothing: the services mark what is to follow within the transaction of the change."""


def link(own: Own | None, memory_id: uuid.UUID) -> None:
    """Remember what a backend calls a memory; whatever it called so before is forgotten."""
    if own is None or not own.record_id:
        return
    same = BackendCopy.objects.filter(backend=own.backend, own_id=own.record_id)
    same.exclude(memory_id=memory_id).delete()
    BackendCopy.objects.update_or_create(
        backend=own.backend,
        memory_id=memory_id,
        defaults={"own_id": own.record_id, "pending": "", "attempts": 0, "error": ""},
    )


def changed(ids: Collection[uuid.UUID]) -> None:
    """Have every backend that has these memories, and was not told yet, follow."""
    plan = backend_wiring.plan()
    if plan.is_local or not ids:
        return
    copies = BackendCopy.objects.filter(memory_id__in=list(ids), backend__in=plan.others)
    waiting = copies.exclude(backend=_told.get()).update(
        pending=BackendCopy.Pending.UPDATE, attempts=0, error="", due_at=None
    )
    if waiting:
        soon()


def added() -> None:
    """Have a primary elsewhere receive memories that were stored without it (an import)."""
    plan = backend_wiring.plan()
    if plan.is_elsewhere and _told.get() in ("", LATER):
        params = {"backend": plan.primary}
        key = f"{COPY}:{plan.primary}"[:120]
        jobs.enqueue(jobs.Order(COPY, params, dedupe_key=key, requested_by=jobs.UNASKED))


def removed(ids: Collection[uuid.UUID]) -> None:
    """Have every backend that has these memories remove them."""
    if not ids or (backend_wiring.plan().is_local and not _has_any(ids)):
        return
    copies = BackendCopy.objects.filter(memory_id__in=list(ids))
    copies.filter(backend=_told.get()).delete()
    waiting = copies.exclude(backend=_told.get()).update(
        pending=BackendCopy.Pending.DELETE, attempts=0, error="", due_at=None
    )
    if waiting and backend_wiring.plan().others:
        soon()


def soon() -> None:
    """Have the background job tell what is pending, once the transaction commits."""
    jobs.enqueue(jobs.Order(FOLLOW, dedupe_key=FOLLOW, requested_by=jobs.UNASKED))


def missing_in(backend: str) -> int:
    """How many live memories a backend does not have."""
    live = Memory.objects.filter(trashed_at__isnull=True, archived_at__isnull=True).count()
    known = BackendCopy.objects.filter(backend=backend).exclude(pending="delete").count()
    return max(0, live - known)


def _has_any(ids: Collection[uuid.UUID]) -> bool:
    return BackendCopy.objects.filter(memory_id__in=list(ids)).exists()
