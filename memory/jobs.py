"""Job rows: enqueue after commit, claim, lease, progress, cancel, sweep.

The row is the truth. A message that is lost, or that dies with its process, is sent again by the
sweep; a message that comes twice claims nothing the second time.
"""

from __future__ import annotations

import logging
import os
import socket
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any, Final

from celery import current_app
from django.db import IntegrityError, transaction
from django.db.models import F, Q

from engine.errors import Cancelled, EngineError
from memory.clock import now
from memory.errors import ServiceError
from memory.models import Job

logger = logging.getLogger("memory.jobs")

LEASE: Final = timedelta(seconds=60)
DISPATCH_GRACE: Final = timedelta(seconds=10)
MAX_ATTEMPTS: Final = 3
KEPT: Final = timedelta(days=90)
BRIEFLY: Final = timedelta(days=1)
UNASKED: Final = "system"
"""Who orders the jobs that follow a write by themselves."""
PROGRESS_EVERY_S: Final = 0.25
TASK: Final = "memory.run_job"
BULK_KINDS: Final = frozenset({"reindex"})
"""Kinds that may run for hours; everything else must not wait behind them."""

Handler = Callable[["JobContext"], Mapping[str, Any]]


def worker_name(role: str = "worker") -> str:
    """Name of this process on leases. ``studio`` leases are voided by the next start."""
    return f"{role}@{socket.gethostname()}:{os.getpid()}"


@dataclass(frozen=True, slots=True)
class Order:
    """A job as ordered. While one with the same ``dedupe_key`` is active, that one is answered."""

    kind: str
    params: Mapping[str, Any] = field(default_factory=dict)
    dedupe_key: str = ""
    owner_id: int | None = None
    requested_by: str = ""


def enqueue(order: Order, *, dispatch: bool = True) -> Job:
    """Make a job row and send its id after commit; ``dispatch`` False leaves it to the caller."""
    job = Job(
        kind=order.kind,
        params=dict(order.params),
        dedupe_key=order.dedupe_key,
        owner_id=order.owner_id,
        requested_by=order.requested_by[:160],
        created_at=now(),
    )
    if order.dedupe_key:
        active = Job.objects.filter(dedupe_key=order.dedupe_key, state__in=Job.ACTIVE).first()
        if active is not None:
            return active
    try:
        with transaction.atomic():
            job.save(force_insert=True)
    except IntegrityError:
        # Someone was faster; when that one has ended already, there is room for ours.
        return enqueue(order, dispatch=dispatch)
    if dispatch:
        transaction.on_commit(partial(send, job.pk, order.kind))
    return job


def send(job_id: uuid.UUID, kind: str) -> None:
    """Tell the workers about a job. When the broker is down, the sweep sends it again."""
    queue = "bulk" if kind in BULK_KINDS else "interactive"
    try:
        current_app.send_task(TASK, args=[str(job_id)], queue=queue)
    except (OSError, current_app.connection_for_write().connection_errors) as error:
        logger.warning("job %s waits for the broker: %s", job_id, type(error).__name__)


class JobContext:
    """What a handler sees of its job. Every call may raise ``Cancelled``."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self._written = 0.0

    @property
    def params(self) -> dict[str, Any]:
        """Parameters of the job as last saved."""
        params: dict[str, Any] = self.job.params
        return params

    def progress(self, done: int, total: int, *, message: str = "", force: bool = False) -> None:
        """Save progress and renew the lease, at most four times a second."""
        moment = time.monotonic()
        if not force and moment - self._written < PROGRESS_EVERY_S:
            return
        self._written = moment
        self.job.done, self.job.total, self.job.message = done, total, message[:300]
        self._renew(done=done, total=total, message=self.job.message)

    def save_params(self, **values: Any) -> None:
        """Save parameters, such as the cursor a restart goes on from."""
        self.job.params = {**self.job.params, **values}
        self._renew(params=self.job.params)

    def refresh(self) -> None:
        """Read parameters that someone else may have changed."""
        self.job.refresh_from_db(fields=["params", "is_cancel_requested"])
        if self.job.is_cancel_requested:
            raise Cancelled("the job was cancelled")

    def _renew(self, **values: Any) -> None:
        ours = Job.objects.filter(pk=self.job.pk, state=Job.State.RUNNING, worker=self.job.worker)
        if ours.filter(is_cancel_requested=False).update(lease_until=now() + LEASE, **values) != 1:
            raise Cancelled("the job was cancelled")


def claim(job_id: str | uuid.UUID, worker: str) -> Job | None:
    """Take a queued job, or one whose lease lapsed; None when another worker has it."""
    moment = now()
    free = Q(state=Job.State.QUEUED) | Q(state=Job.State.RUNNING, lease_until__lt=moment)
    claimed = Job.objects.filter(free, pk=job_id).update(
        state=Job.State.RUNNING,
        worker=worker,
        started_at=moment,
        lease_until=moment + LEASE,
        attempts=F("attempts") + 1,
    )
    return Job.objects.get(pk=job_id) if claimed == 1 else None


def run(job_id: str | uuid.UUID, handlers: Mapping[str, Handler], *, role: str = "worker") -> bool:
    """Claim a job and carry it out; its outcome is in the row. False when another has it."""
    job = claim(job_id, worker_name(role))
    if job is None:
        return False
    try:
        result = handlers[job.kind](JobContext(job))
    except Cancelled:
        _finish(job, Job.State.CANCELLED)
    except (EngineError, ServiceError) as error:
        logger.warning("job %s (%s) failed: %s", job.kind, job.pk, error.code)
        _finish(job, Job.State.FAILED, error_code=error.code, message=str(error)[:300])
    except Exception as error:
        logger.exception("job %s (%s) failed", job.kind, job.pk)
        _retry_or_fail(job, error)
    else:
        _finish(job, Job.State.SUCCEEDED, result=dict(result))
    return True


def cancel(job: Job) -> None:
    """Ask a job to stop; one that no worker has yet stops at once."""
    queued = Job.objects.filter(pk=job.pk, state=Job.State.QUEUED)
    if not queued.update(state=Job.State.CANCELLED, finished_at=now()):
        Job.objects.filter(pk=job.pk, state=Job.State.RUNNING).update(is_cancel_requested=True)
    job.refresh_from_db()


def sweep() -> int:
    """Send every active job again that no worker holds; how many."""
    moment = now()
    lapsed = Q(state=Job.State.RUNNING, lease_until__lt=moment)
    waiting = Q(state=Job.State.QUEUED, created_at__lt=moment - DISPATCH_GRACE) & (
        Q(lease_until__isnull=True) | Q(lease_until__lt=moment)
    )
    found = list(Job.objects.filter(lapsed | waiting).values_list("pk", "kind"))
    for job_id, kind in found:
        send(job_id, kind)
    return len(found)


def prune() -> int:
    """Forget jobs that ended long ago; how many. Each write may have made one that embeds it."""
    ended = Job.objects.exclude(state__in=Job.ACTIVE)
    unasked = Q(requested_by=UNASKED, state=Job.State.SUCCEEDED, finished_at__lt=now() - BRIEFLY)
    old = ended.filter(Q(finished_at__lt=now() - KEPT) | unasked)
    count, _by_model = old.delete()
    return count


def void_own_leases() -> int:
    """Free the jobs an earlier studio process held; one server at a time holds the home."""
    held = Job.objects.filter(state=Job.State.RUNNING, worker__startswith="studio@")
    queued = Job.objects.filter(state=Job.State.QUEUED)
    queued.update(created_at=now() - DISPATCH_GRACE * 2, lease_until=None)
    return held.update(lease_until=now() - timedelta(seconds=1))


def _finish(job: Job, state: Job.State, **values: Any) -> None:
    ours = Job.objects.filter(pk=job.pk, worker=job.worker, state=Job.State.RUNNING)
    ours.update(state=state, finished_at=now(), lease_until=None, **values)


def _retry_or_fail(job: Job, error: Exception) -> None:
    code = type(error).__name__
    if job.attempts >= MAX_ATTEMPTS:
        _finish(job, Job.State.FAILED, error_code=code, message="")
        return
    pause = timedelta(seconds=5 * 2**job.attempts)
    Job.objects.filter(pk=job.pk, worker=job.worker, state=Job.State.RUNNING).update(
        state=Job.State.QUEUED, lease_until=now() + pause, error_code=code
    )
