"""The job that tells backends what has changed: updates and deletes, by their own ids.

A backend that fails keeps what is pending; the half-minute round tries again, ever less often.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final

from django.db.models import F, Q

from engine.errors import BackendFailed
from engine.protocols import MemoryBackend
from memory import backend_wiring
from memory.clock import now
from memory.jobs import JobContext
from memory.models import BackendCopy, Memory
from memory.services.backends import copies, truth

BATCH: Final = 200
RETRY: Final = timedelta(minutes=1)
MOST_DOUBLINGS: Final = 6
GIVEN_UP: Final = frozenset({"outside_vault", "too_large"})
"""Failures that no later attempt can mend."""


def run(context: JobContext) -> dict[str, Any]:
    """Tell every backend what is pending; what was told, and who failed."""
    told, failed = 0, {}
    built = backend_wiring.backends()
    for name in backend_wiring.plan().others:
        if name not in built:
            continue
        try:
            for done in _tell(name, built[name]):
                told += done
                context.progress(told, told)
        except BackendFailed as error:
            failed[name] = error.code
    return {"told": told, "failed": failed}


def resume() -> None:
    """Start the job again when something waits and its pause is over."""
    others = backend_wiring.plan().others
    waiting = BackendCopy.objects.exclude(pending="").filter(backend__in=others)
    if others and waiting.filter(Q(due_at__isnull=True) | Q(due_at__lte=now())).exists():
        copies.soon()


def _tell(name: str, backend: MemoryBackend) -> Iterator[int]:
    """Each pending copy of one backend. Raises when the backend fails as a whole."""
    last = 0
    while batch := list(
        BackendCopy.objects.filter(backend=name, pk__gt=last)
        .exclude(pending="")
        .order_by("pk")[:BATCH]
    ):
        for copy in batch:
            last = copy.pk
            try:
                _tell_one(backend, copy)
                yield 1
            except BackendFailed as error:
                _note(copy, error)
                if error.code not in GIVEN_UP:
                    raise


def _tell_one(backend: MemoryBackend, copy: BackendCopy) -> None:
    rows = Memory.objects.select_related("api_key").filter(pk=copy.memory_id)
    memory = rows.filter(trashed_at__isnull=True).first()
    if memory is None or copy.pending == BackendCopy.Pending.DELETE:
        backend.delete(copy.own_id)
        # One that came back meanwhile is to be made again, not to be forgotten.
        BackendCopy.objects.filter(pk=copy.pk, pending=copy.pending).delete()
        return
    same = BackendCopy.objects.filter(pk=copy.pk, pending=copy.pending, attempts=copy.attempts)
    revision = memory.revision
    if not backend.update(copy.own_id, truth.all_of(memory)):
        same.delete()
    elif Memory.objects.filter(pk=memory.pk, revision=revision).exists():
        same.update(pending="", attempts=0, error="", due_at=None)


def _note(copy: BackendCopy, error: BackendFailed) -> None:
    pause = RETRY * 2 ** min(copy.attempts, MOST_DOUBLINGS)
    BackendCopy.objects.filter(pk=copy.pk).update(
        attempts=F("attempts") + 1, error=error.code, due_at=now() + pause
    )
