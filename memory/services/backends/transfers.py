"""Jobs that bring all memories to a backend, or all of a backend's here."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any, Final, Literal

from django.db.models import Exists, OuterRef, QuerySet
from django.utils.translation import gettext as _

from engine.errors import BackendFailed
from engine.protocols import MemoryBackend
from engine.records import Filter
from memory import backend_wiring, jobs
from memory.clock import now
from memory.errors import Conflict, NotFound
from memory.jobs import JobContext
from memory.models import BackendCopy, Job, Memory
from memory.principal import Principal
from memory.services import access, audit, lifetimes
from memory.services.backends import copies, mirror, truth
from memory.services.backends.copies import COPY, Own

PULL: Final = "backend-pull"
BATCH: Final = 100
PULL_EVERY: Final = timedelta(minutes=15)
FEW: Final = 20
"""Up to so many memories may vanish at once, whatever their share."""
REFUSED: Final = frozenset({"too_large", "outside_vault", "invalid_response"})
"""Failures of one memory; any other one stops the job."""


def start(principal: Principal, kind: Literal["copy", "pull"], backend: str) -> Job:
    """Start ``copy`` (to the backend) or ``pull`` (from it); while one runs, that is a conflict."""
    access.require(principal, "manage")
    if backend not in backend_wiring.backends():
        raise NotFound(_("There is no memory backend of this name."))
    name = COPY if kind == "copy" else PULL
    key = _key(name, backend)
    if Job.objects.filter(dedupe_key=key, state__in=Job.ACTIVE).exists():
        raise Conflict(_("This is already being done."), code="already_running")
    order = jobs.Order(name, {"backend": backend}, dedupe_key=key, requested_by=principal.label)
    audit.record(principal, f"backend.{kind}", ids=[backend])
    return jobs.enqueue(order)


def resume() -> None:
    """Every quarter of an hour read again what a primary has that leaves lists to its mirror."""
    plan = backend_wiring.plan()
    if not plan.is_elsewhere or plan.configs[plan.primary].answers == "backend":
        return
    key = _key(PULL, plan.primary)
    if not Job.objects.filter(dedupe_key=key, created_at__gt=now() - PULL_EVERY).exists():
        params = {"backend": plan.primary}
        jobs.enqueue(jobs.Order(PULL, params, dedupe_key=key, requested_by=jobs.UNASKED))


def copy(context: JobContext) -> dict[str, Any]:
    """Store at a backend every live memory that it does not have; goes on where it stopped."""
    name, backend = _backend(context)
    rows = _missing(name)
    total, done, refused = rows.count(), 0, 0
    last = uuid.UUID(int=0)
    while batch := list(rows.filter(pk__gt=last).order_by("pk")[:BATCH]):
        for memory in batch:
            last = memory.pk
            try:
                record = backend.create(truth.draft_of(memory))
            except BackendFailed as error:
                if error.code not in REFUSED:
                    raise
                refused += 1
                continue
            copies.link(Own(name, record.id), memory.pk)
            done += 1
            context.progress(done + refused, total)
    return {"copied": done, "refused": refused}


def pull(context: JobContext) -> dict[str, Any]:
    """Mirror every record of a backend; what the primary has no more goes into the trash here.

    When most of what it had has vanished, nothing does: that looks like another folder or database
    rather than like deletions. What another backend has no more, it is not asked for again.
    """
    name, backend = _backend(context)
    seen: set[str] = set()
    shown, offset = 0, 0
    while True:
        page = backend.list_records(Filter(limit=BATCH, offset=offset))
        fresh = [record for record in page.data if record.id not in seen]
        shown += len(mirror.apply(name, fresh, asked=True))
        seen.update(record.id for record in page.data)
        offset += len(page.data)
        context.progress(offset, max(page.total, offset))
        if not page.data or not fresh or offset >= page.total:
            break
    gone = _vanished(name, seen)
    kept = len(gone) if _is_suspicious(name, gone) else 0
    removed = 0 if kept else _let_go(name, gone)
    return {"mirrored": shown, "removed": removed, "kept": kept}


def _key(kind: str, backend: str) -> str:
    return f"{kind}:{backend}"[:120]


def _let_go(name: str, gone: list[uuid.UUID]) -> int:
    if name == backend_wiring.plan().primary:
        return mirror.vanish(name, gone)
    return BackendCopy.objects.filter(backend=name, memory_id__in=gone).delete()[0]


def _backend(context: JobContext) -> tuple[str, MemoryBackend]:
    name = str(context.params["backend"])
    backend = backend_wiring.backends().get(name)
    if backend is None:
        raise BackendFailed(code="not_registered")
    return name, backend


def _missing(name: str) -> QuerySet[Memory]:
    known = BackendCopy.objects.filter(backend=name, memory_id=OuterRef("pk"))
    rows = Memory.objects.filter(lifetimes.live()).exclude(Exists(known))
    return rows.select_related("api_key")


def _vanished(name: str, seen: set[str]) -> list[uuid.UUID]:
    known = BackendCopy.objects.filter(backend=name, pending="")
    return [row.memory_id for row in known.iterator() if row.own_id not in seen]


def _is_suspicious(name: str, gone: list[uuid.UUID]) -> bool:
    had = BackendCopy.objects.filter(backend=name).count()
    return len(gone) > FEW and len(gone) * 2 > had
