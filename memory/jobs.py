"""Job rows: enqueue after commit, claim, lease, progress, cancel, sweep.

The row is the truth. A message that is lost, or that dies with its process, is sent again by the
sweep; a message that comes twice claims nothing the second time.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any, Final

from django.db import IntegrityError, transaction
from django.db.models import F, Q, QuerySet
from django.utils.translation import gettext_noop

from engine import spans
from engine.errors import Cancelled, EngineError
from engine.spans import Span, Value
from memory import dispatch, measured, processes
from memory.clock import now
from memory.errors import ServiceError
from memory.models import Job

logger = logging.getLogger("memory.jobs")

LEASE: Final = timedelta(seconds=60)
DISPATCH_GRACE: Final = timedelta(seconds=10)
SENT_FOR: Final = timedelta(seconds=60)
"""So long the sweep waits at least for a worker to take what it has sent."""
SENT_FOR_AT_MOST: Final = timedelta(minutes=10)
SWEEP_MOST: Final = 1000
MAX_ATTEMPTS: Final = 3
MAX_LOST: Final = 10
MAX_LOST_ON_THE_WAY: Final = 100
"""A job that so many workers have died of is not given to another; the second where they got on."""
KEPT: Final = timedelta(days=90)
BRIEFLY: Final = timedelta(days=1)
UNASKED: Final = "system"
"""Who orders the jobs that follow a write by themselves."""
PROGRESS_EVERY_S: Final = 0.25
TASK: Final = "memory.run_job"
BULK_KINDS: Final = frozenset({"reindex", "backfill", "backend-copy", "backend-pull"})
"""Kinds that may run for hours; everything else must not wait behind them."""
WORKERS: Final = frozenset({"studio", "worker"})
"""Roles whose jobs another process may go on with; a request waits for its answer."""
LOST_TOO_OFTEN: Final = gettext_noop("The workers that ran this job died of it.")

Handler = Callable[["JobContext"], Mapping[str, Any]]
_LAST_LOOKS: Final[dict[str, Callable[[Mapping[str, Any]], None]]] = {}
_WHEN_ENDED: Final[list[Callable[[Job], None]]] = []

_is_stopping = False


class HandedBack(Cancelled):
    """This process is about to end: the job is queued again, for another one."""


def stop_working() -> None:
    """Hand back what the workers of this process run, at its next step, and take nothing more."""
    global _is_stopping
    _is_stopping = True


def start_working() -> None:
    """Take jobs (again)."""
    global _is_stopping
    _is_stopping = False


def is_stopping() -> bool:
    """Whether this process hands its jobs back."""
    return _is_stopping


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
        traceparent=spans.current(),
        created_at=now(),
    )
    if order.dedupe_key:
        active = Job.objects.filter(dedupe_key=order.dedupe_key, state__in=Job.ACTIVE).first()
        if active is not None:
            _look_after_commit(active)
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


def _look_after_commit(active: Job) -> None:
    """Have an answered job's kind look again should the job have ended before this commit: its own
    last look saw nothing of this transaction."""
    if active.kind in _LAST_LOOKS and transaction.get_connection().in_atomic_block:
        transaction.on_commit(partial(_look_if_ended, active.pk, active.kind))


def _look_if_ended(job_id: uuid.UUID, kind: str) -> None:
    ended = Job.objects.filter(pk=job_id, state=Job.State.SUCCEEDED).first()
    if ended is not None:
        _LAST_LOOKS[kind](ended.result)


def send(job_id: uuid.UUID, kind: str) -> bool:
    """Tell the workers about a job. When the broker is down, the sweep sends it again."""
    return dispatch.send(TASK, [str(job_id)], queue="bulk" if kind in BULK_KINDS else "interactive")


class JobContext:
    """What a handler sees of its job. Every call may raise ``Cancelled``.

    With ``may_hand_back`` that is also how a process that ends takes the job from its handler.
    """

    def __init__(self, job: Job, *, may_hand_back: bool = False) -> None:
        self.job = job
        self._may_hand_back = may_hand_back
        self._written = 0.0

    @property
    def params(self) -> dict[str, Any]:
        """Parameters of the job as last saved."""
        params: dict[str, Any] = self.job.params
        return params

    def progress(self, done: int, total: int, *, message: str = "", force: bool = False) -> None:
        """Save progress and renew the lease, at most four times a second."""
        self._check()
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
        self._check()
        self.job.refresh_from_db(fields=["params", "is_cancel_requested"])
        if self.job.is_cancel_requested:
            raise Cancelled("the job was cancelled")

    def _check(self) -> None:
        if self._may_hand_back and _is_stopping:
            raise HandedBack("the process ends")

    def _renew(self, **values: Any) -> None:
        ours = _held(self.job)
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
    """Claim a job and carry it out; its outcome is in the row.

    False when another has it, or when this process ends and the job is for another.
    """
    is_worker = role in WORKERS
    if is_worker and _is_stopping:
        return False
    job = claim(job_id, processes.name(role)) or _take_over(job_id, processes.name(role))
    if job is None:
        return False
    named: dict[str, Value] = {"job.kind": job.kind, "job.attempt": job.attempts}
    with spans.span(f"job {job.kind}", "consumer", parent=job.traceparent, attributes=named) as one:
        return _carry_out(job, handlers, one, is_worker=is_worker)


def _carry_out(job: Job, handlers: Mapping[str, Handler], span: Span, *, is_worker: bool) -> bool:
    """Run the handler of a claimed job and note the outcome; False when it was handed back."""
    try:
        result = handlers[job.kind](JobContext(job, may_hand_back=is_worker))
    except HandedBack:
        _hand_back(job)
        return False
    except Cancelled:
        _finish(job, Job.State.CANCELLED)
    except (EngineError, ServiceError) as error:
        logger.warning("job %s (%s) failed: %s", job.kind, job.pk, error.code)
        span.failed(error.code)
        _finish(job, Job.State.FAILED, error_code=error.code, message=str(error)[:300])
    except Exception as error:
        logger.exception("job %s (%s) failed", job.kind, job.pk)
        span.failed(type(error).__name__)
        _retry_or_fail(job, error)
    else:
        _succeed(job, result)
    return True


def last_look(kind: str, look_again: Callable[[Mapping[str, Any]], None]) -> None:
    """Have a kind look once more when its row has ended well: who ordered it in its last moment
    was answered with a job that had seen everything already. It is given the result."""
    _LAST_LOOKS[kind] = look_again


def when_ended(hear: Callable[[Job], None]) -> None:
    """Have something told of every job that ends, inside the transaction that ends it."""
    _WHEN_ENDED.append(hear)


def _take_over(job_id: str | uuid.UUID, worker: str) -> Job | None:
    """Claim a job whose worker has died beside us, without waiting for its lease."""
    held = Job.objects.filter(pk=job_id, state=Job.State.RUNNING)
    holder = held.values_list("worker", flat=True).first()
    if holder is None or not processes.is_gone(holder):
        return None
    held.filter(worker=holder).update(lease_until=now() - timedelta(seconds=1))
    return claim(job_id, worker)


def cancel(job: Job) -> None:
    """Ask a job to stop; one that no worker has yet stops at once."""
    queued = Job.objects.filter(pk=job.pk, state=Job.State.QUEUED)
    if not _end(queued, state=Job.State.CANCELLED):
        Job.objects.filter(pk=job.pk, state=Job.State.RUNNING).update(is_cancel_requested=True)
    job.refresh_from_db()


def sweep() -> int:
    """Send every active job again that no worker holds; how many went out."""
    _free_the_dead()
    moment = now()
    lapsed = Q(state=Job.State.RUNNING, lease_until__lt=moment)
    waiting = Q(state=Job.State.QUEUED, created_at__lt=moment - DISPATCH_GRACE) & (
        Q(lease_until__isnull=True) | Q(lease_until__lt=moment)
    )
    hopeless = Q(attempts__gte=MAX_LOST, done=0) | Q(attempts__gte=MAX_LOST_ON_THE_WAY)
    _give_up(Job.objects.filter(lapsed & hopeless))
    found = Job.objects.filter(lapsed | waiting).order_by("created_at")
    sent = 0
    for job_id, kind, created_at in found.values_list("pk", "kind", "created_at")[:SWEEP_MOST]:
        # Whoever sweeps next finds it sent: many may sweep, and a long queue grows no longer.
        still = Job.objects.filter(lapsed | waiting, pk=job_id)
        if send(job_id, kind):
            sent += 1
            # Without any worker the messages of a day must not fill the broker.
            pause = min(SENT_FOR_AT_MOST, max(SENT_FOR, (moment - created_at) / 10))
            still.update(state=Job.State.QUEUED, lease_until=moment + pause)
    return sent


def _free_the_dead() -> int:
    """End the leases of processes of this machine that are no more; how many."""
    running = Job.objects.filter(state=Job.State.RUNNING, lease_until__gt=now())
    holders = set(running.values_list("worker", flat=True))
    gone = [holder for holder in holders if processes.is_gone(holder)]
    return running.filter(worker__in=gone).update(lease_until=now() - timedelta(seconds=1))


def _give_up(jobs: QuerySet[Job]) -> None:
    for job_id in jobs.values_list("pk", flat=True):
        _end(
            jobs.filter(pk=job_id),
            state=Job.State.FAILED,
            error_code="worker_lost",
            message=LOST_TOO_OFTEN,
        )


def _end(jobs: QuerySet[Job], **values: Any) -> bool:
    """End a job, if the row is still as the query says; whether it was."""
    with transaction.atomic():
        found = list(jobs.select_for_update().values_list("pk", flat=True))
        if jobs.update(finished_at=now(), lease_until=None, **values) != 1:
            return False
        ended = Job.objects.get(pk=found[0])
        transaction.on_commit(partial(_measure, ended))
        for hear in _WHEN_ENDED:
            hear(ended)
    return True


def prune() -> int:
    """Forget jobs that ended long ago; how many. Each write may have made one that embeds it."""
    ended = Job.objects.exclude(state__in=Job.ACTIVE)
    unasked = Q(requested_by=UNASKED, state=Job.State.SUCCEEDED, finished_at__lt=now() - BRIEFLY)
    old = ended.filter(Q(finished_at__lt=now() - KEPT) | unasked)
    count, _by_model = old.delete()
    return count


def void_own_leases(*, alone: bool) -> int:
    """Free at a start what processes of this machine held that are no more; how many.

    ``alone`` says that no other studio can be running on this database, wherever its process was:
    then every studio's jobs are free, and what is queued is sent at once.
    """
    freed = _free_the_dead()
    if not alone:
        return freed
    held = Job.objects.filter(state=Job.State.RUNNING, worker__startswith="studio@")
    queued = Job.objects.filter(state=Job.State.QUEUED)
    queued.update(created_at=now() - DISPATCH_GRACE * 2, lease_until=None)
    still = held.filter(lease_until__gt=now())
    return freed + still.update(lease_until=now() - timedelta(seconds=1))


def _held(job: Job) -> QuerySet[Job]:
    """The row, as long as this very claim holds it: threads of a process share its name."""
    return Job.objects.filter(
        pk=job.pk, state=Job.State.RUNNING, worker=job.worker, attempts=job.attempts
    )


def _measure(job: Job) -> None:
    measured.JOBS_ENDED.add(job.kind, job.state)
    if job.started_at is not None and job.finished_at is not None:
        measured.JOB_TIME.add(job.kind, seconds=(job.finished_at - job.started_at).total_seconds())


def _finish(job: Job, state: Job.State, **values: Any) -> None:
    _end(_held(job), state=state, **values)


def _succeed(job: Job, result: Mapping[str, Any]) -> None:
    _finish(job, Job.State.SUCCEEDED, result=dict(result))
    if (look_again := _LAST_LOOKS.get(job.kind)) is not None:
        look_again(result)


def _hand_back(job: Job) -> None:
    # As if it had never been taken; what it has done so far is in its parameters.
    _held(job).update(state=Job.State.QUEUED, lease_until=None, attempts=F("attempts") - 1)


def _retry_or_fail(job: Job, error: Exception) -> None:
    code = type(error).__name__
    if job.attempts >= MAX_ATTEMPTS:
        _finish(job, Job.State.FAILED, error_code=code, message="")
        return
    pause = timedelta(seconds=5 * 2**job.attempts)
    _held(job).update(state=Job.State.QUEUED, lease_until=now() + pause, error_code=code)
