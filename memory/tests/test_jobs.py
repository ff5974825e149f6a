"""Job rows: dedupe, claim, lease, sweep, retry, cancel, progress."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

import pytest
from celery import current_app
from django.conf import settings
from django.db import IntegrityError, transaction

from engine.errors import Cancelled, EmbeddingFailed
from memory import jobs, processes
from memory.clock import now
from memory.errors import Conflict, Forbidden, NotFound
from memory.models import AuditEntry, Job
from memory.principal import SYSTEM, Principal
from memory.services import jobrows
from memory.tests.asking import days_ago

pytestmark = pytest.mark.django_db


def _job(kind: str = "count", **fields: Any) -> Job:
    return jobs.enqueue(jobs.Order(kind, **fields), dispatch=False)


def _lapse(job: Job) -> None:
    Job.objects.filter(pk=job.pk).update(lease_until=now() - timedelta(seconds=1))


def _noop(context: jobs.JobContext) -> Mapping[str, Any]:
    return {"attempts": context.job.attempts}


def _ended() -> str:
    """Name of a process of this machine that has ended."""
    child = "from memory import processes; print(processes.name('worker'))"
    done = subprocess.run(
        [sys.executable, "-c", child], cwd=settings.BASE_DIR, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def stopping() -> Iterator[None]:
    """Whatever the test does to it, this process takes jobs afterwards."""
    yield
    jobs.start_working()


@pytest.fixture
def sent() -> Iterator[Any]:
    """Ids on the queue of short jobs, as they come."""
    with current_app.connection_for_write() as broker:
        queue = broker.SimpleQueue("interactive")
        queue.clear()
        yield lambda: [queue.get(block=False).payload[0][0] for _ in range(queue.qsize())]
        queue.clear()


def test_a_job_runs_once_and_keeps_its_result() -> None:
    job = _job()
    assert jobs.run(job.pk, {"count": _noop})
    assert not jobs.run(job.pk, {"count": _noop}), "a message that comes twice claims nothing"
    job.refresh_from_db()
    assert (job.state, job.result, job.lease_until) == (Job.State.SUCCEEDED, {"attempts": 1}, None)
    assert job.started_at is not None
    assert job.finished_at is not None


def test_while_one_with_the_same_key_is_active_that_one_is_answered() -> None:
    first = _job(dedupe_key="k")
    assert _job(dedupe_key="k").pk == first.pk
    jobs.claim(first.pk, "w")
    assert _job(dedupe_key="k").pk == first.pk
    assert _job(dedupe_key="other").pk != first.pk
    assert _job().pk != _job().pk, "without a key there may be many"
    Job.objects.filter(pk=first.pk).update(state=Job.State.SUCCEEDED)
    assert _job(dedupe_key="k").pk != first.pk


def test_the_database_itself_refuses_two_active_jobs_with_one_key() -> None:
    _job(dedupe_key="k")
    with pytest.raises(IntegrityError), transaction.atomic():
        Job.objects.create(kind="count", dedupe_key="k", created_at=now())


def test_only_one_worker_claims_a_job() -> None:
    job = _job()
    assert jobs.claim(job.pk, "one") is not None
    assert jobs.claim(job.pk, "two") is None


def test_a_lapsed_lease_lets_another_worker_go_on() -> None:
    job = _job()
    dead = jobs.claim(job.pk, "dead")
    assert dead is not None
    jobs.JobContext(dead).save_params(cursor=7)
    _lapse(job)
    other = jobs.claim(job.pk, "other")
    assert other is not None
    assert (other.params, other.attempts, other.worker) == ({"cursor": 7}, 2, "other")
    with pytest.raises(Cancelled):
        jobs.JobContext(dead).save_params(cursor=3)
    with pytest.raises(Cancelled):
        jobs.JobContext(dead).progress(1, 2)
    other.refresh_from_db()
    assert other.params == {"cursor": 7}, "the one that lost its lease writes nothing any more"


def test_a_worker_that_lost_its_lease_does_not_end_the_job() -> None:
    job = _job()

    def slow(_context: jobs.JobContext) -> Mapping[str, Any]:
        _lapse(job)
        assert jobs.claim(job.pk, "other") is not None
        return {"by": "slow"}

    jobs.run(job.pk, {"count": slow})
    job.refresh_from_db()
    assert (job.state, job.result, job.worker) == (Job.State.RUNNING, {}, "other")


def test_progress_renews_the_lease_and_is_written_at_most_four_times_a_second() -> None:
    job = _job()
    claimed = jobs.claim(job.pk, "w")
    assert claimed is not None
    context = jobs.JobContext(claimed)
    Job.objects.filter(pk=job.pk).update(lease_until=now() + timedelta(seconds=1))
    context.progress(1, 10, message="one")
    context.progress(2, 10, message="two")
    job.refresh_from_db()
    assert (job.done, job.total, job.percent, job.message) == (1, 10, 10, "one")
    assert job.lease_until is not None
    assert job.lease_until > now() + timedelta(seconds=50)
    context.progress(10, 10, force=True)
    job.refresh_from_db()
    assert (job.done, job.percent) == (10, 100)


def test_an_engine_error_fails_the_job_with_its_code() -> None:
    def fail(_context: jobs.JobContext) -> Mapping[str, Any]:
        raise EmbeddingFailed("The service is busy.", code="rate_limited")

    job = _job()
    jobs.run(job.pk, {"count": fail})
    job.refresh_from_db()
    assert (job.state, job.error_code, job.message) == (
        Job.State.FAILED,
        "rate_limited",
        "The service is busy.",
    )


def test_an_unexpected_exception_is_tried_again_and_then_fails(sent: Any) -> None:
    def crash(_context: jobs.JobContext) -> Mapping[str, Any]:
        raise ZeroDivisionError("a private text")

    job = _job()
    states = []
    for _ in range(jobs.MAX_ATTEMPTS):
        jobs.run(job.pk, {"count": crash})
        job.refresh_from_db()
        states.append(job.state)
    assert states == [Job.State.QUEUED, Job.State.QUEUED, Job.State.FAILED]
    assert (job.error_code, job.message) == ("ZeroDivisionError", "")
    assert jobs.sweep() == 0


def test_a_retry_waits_for_its_pause(sent: Any) -> None:
    def crash(_context: jobs.JobContext) -> Mapping[str, Any]:
        raise ZeroDivisionError

    job = _job()
    Job.objects.update(created_at=days_ago(1))
    jobs.run(job.pk, {"count": crash})
    assert jobs.sweep() == 0
    Job.objects.update(lease_until=now() - timedelta(seconds=1))
    assert jobs.sweep() == 1
    assert sent() == [str(job.pk)]
    jobs.run(job.pk, {"count": _noop})
    job.refresh_from_db()
    assert (job.state, job.result) == (Job.State.SUCCEEDED, {"attempts": 2})


def test_the_sweep_sends_only_what_no_worker_holds(sent: Any) -> None:
    fresh, forgotten, held, lapsed, done = (_job() for _ in range(5))
    Job.objects.filter(pk=forgotten.pk).update(created_at=days_ago(1))
    for job in (held, lapsed):
        jobs.claim(job.pk, "w")
    _lapse(lapsed)
    jobs.run(done.pk, {"count": _noop})
    assert jobs.sweep() == 2
    assert set(sent()) == {str(forgotten.pk), str(lapsed.pk)}
    assert fresh.is_active
    assert held.is_active


def test_the_only_studio_of_a_database_frees_the_jobs_of_earlier_ones(sent: Any) -> None:
    ours, workers, queued = _job(), _job(), _job()
    jobs.claim(ours.pk, processes.name("studio"))
    jobs.claim(workers.pk, processes.name("worker"))
    assert jobs.sweep() == 0
    assert jobs.void_own_leases(alone=True) == 1
    assert jobs.sweep() == 2
    assert set(sent()) == {str(ours.pk), str(queued.pk)}


def test_a_start_beside_others_frees_only_what_dead_processes_of_this_machine_held(
    sent: Any,
) -> None:
    living, dead, elsewhere = _job(), _job(), _job()
    name = processes.name("studio")
    jobs.claim(living.pk, name)
    jobs.claim(dead.pk, _ended())
    jobs.claim(elsewhere.pk, name.replace("@", "@other-"))
    assert jobs.void_own_leases(alone=False) == 1
    assert jobs.sweep() == 1
    assert sent() == [str(dead.pk)]


def test_a_message_that_comes_back_from_a_dead_worker_is_not_lost_on_its_lease() -> None:
    job, held = _job(), _job()
    jobs.claim(job.pk, _ended())
    jobs.claim(held.pk, processes.name("worker"))
    assert jobs.run(job.pk, {"count": _noop})
    assert not jobs.run(held.pk, {"count": _noop})
    job.refresh_from_db()
    assert (job.state, job.result) == (Job.State.SUCCEEDED, {"attempts": 2})


def test_what_the_sweep_has_sent_it_does_not_send_again_at_once(sent: Any) -> None:
    lapsed, forgotten = _job(), _job()
    dead = jobs.claim(lapsed.pk, "dead")
    assert dead is not None
    Job.objects.update(created_at=days_ago(1))
    _lapse(lapsed)
    assert (jobs.sweep(), jobs.sweep()) == (2, 0)
    assert set(sent()) == {str(lapsed.pk), str(forgotten.pk)}
    with pytest.raises(Cancelled):
        jobs.JobContext(dead).progress(1, 2)
    Job.objects.update(lease_until=now() - timedelta(seconds=1))
    assert jobs.sweep() == 2


def test_a_job_that_kills_its_workers_is_given_up(sent: Any) -> None:
    job, longer = _job(), _job()
    for each in (job, longer):
        jobs.claim(each.pk, "w")
        _lapse(each)
    Job.objects.update(attempts=jobs.MAX_LOST)
    Job.objects.filter(pk=longer.pk).update(done=7)
    assert jobs.sweep() == 1
    job.refresh_from_db()
    assert (job.state, job.error_code) == (Job.State.FAILED, "worker_lost")
    assert sent() == [str(longer.pk)], "who gets on is not hopeless"


def test_a_process_that_ends_hands_its_job_back(stopping: None) -> None:
    def handler(context: jobs.JobContext) -> Mapping[str, Any]:
        context.save_params(cursor=7)
        jobs.stop_working()
        context.progress(1, 2)
        raise AssertionError("progress should have raised")

    job = _job()
    assert not jobs.run(job.pk, {"count": handler})
    job.refresh_from_db()
    assert (job.state, job.attempts, job.params) == (Job.State.QUEUED, 0, {"cursor": 7})
    assert not jobs.run(job.pk, {"count": _noop}), "and takes none any more"
    jobs.start_working()
    assert jobs.run(job.pk, {"count": _noop})


def test_who_waits_for_an_answer_keeps_the_job(stopping: None) -> None:
    def handler(context: jobs.JobContext) -> Mapping[str, Any]:
        jobs.stop_working()
        context.progress(1, 2)
        return {"by": "request"}

    job = _job()
    assert jobs.run(job.pk, {"count": handler}, role="request")
    job.refresh_from_db()
    assert job.state == Job.State.SUCCEEDED


def test_a_running_job_stops_at_its_next_step_when_cancelled() -> None:
    job = _job()

    def handler(context: jobs.JobContext) -> Mapping[str, Any]:
        jobs.cancel(job)
        context.progress(1, 2)
        raise AssertionError("progress should have raised")

    jobs.run(job.pk, {"count": handler})
    job.refresh_from_db()
    assert (job.state, job.error_code) == (Job.State.CANCELLED, "")


@pytest.mark.parametrize("step", ["progress", "save_params", "refresh"])
def test_every_step_of_a_cancelled_job_says_so(step: str) -> None:
    claimed = jobs.claim(_job().pk, "w")
    assert claimed is not None
    jobs.cancel(claimed)
    context = jobs.JobContext(claimed)
    calls: dict[str, Any] = {
        "progress": lambda: context.progress(1, 2),
        "save_params": lambda: context.save_params(a=1),
        "refresh": context.refresh,
    }
    with pytest.raises(Cancelled):
        calls[step]()


def test_an_ended_job_cannot_be_cancelled_and_a_good_one_not_retried() -> None:
    job = _job()
    with pytest.raises(Conflict) as active:
        jobrows.retry(SYSTEM, job.pk)
    jobs.run(job.pk, {"count": _noop})
    with pytest.raises(Conflict) as ended:
        jobrows.cancel(SYSTEM, job.pk)
    with pytest.raises(Conflict):
        jobrows.retry(SYSTEM, job.pk)
    assert (active.value.code, ended.value.code) == ("not_failed", "job_ended")


def test_retry_makes_a_new_job_that_goes_on_where_the_old_one_stopped() -> None:
    job = _job(params={"cursor": 0}, dedupe_key="k")
    claimed = jobs.claim(job.pk, "w")
    assert claimed is not None
    jobs.JobContext(claimed).save_params(cursor=5)
    Job.objects.filter(pk=job.pk).update(state=Job.State.FAILED)
    again = jobrows.retry(SYSTEM, job.pk)
    assert (again.pk != job.pk, again.params) == (True, {"cursor": 5})
    assert AuditEntry.objects.filter(action="job.retry").count() == 1


def test_a_key_sees_its_own_jobs_and_a_manager_sees_all(
    alice: Principal, bob: Principal, manager: Principal
) -> None:
    own, theirs, nobodys = _job(owner_id=alice.owner), _job(owner_id=bob.owner), _job()
    assert [job.pk for job in jobrows.list_jobs(alice)] == [own.pk]
    assert [job.pk for job in jobrows.active(alice)] == [own.pk]
    assert {job.pk for job in jobrows.list_jobs(manager)} == {own.pk, theirs.pk, nobodys.pk}
    for reference in (theirs.pk, nobodys.pk, "nonsense"):
        with pytest.raises(NotFound):
            jobrows.get(alice, reference)


def test_a_key_that_may_only_read_can_stop_and_start_nothing(alice: Principal) -> None:
    reader = Principal("key", "alice", frozenset({"read"}), owner=alice.owner)
    job = _job(owner_id=alice.owner)
    assert jobrows.get(reader, job.pk).pk == job.pk
    for change in (jobrows.cancel, jobrows.retry):
        with pytest.raises(Forbidden):
            change(reader, job.pk)
    assert jobrows.cancel(alice, job.pk).state == Job.State.CANCELLED


def test_long_jobs_have_a_queue_of_their_own(sent: Any) -> None:
    with current_app.connection_for_write() as broker:
        bulk = broker.SimpleQueue("bulk")
        bulk.clear()
        jobs.send(_job("reindex").pk, "reindex")
        short = _job()
        jobs.send(short.pk, "count")
        assert bulk.qsize() == 1
        bulk.clear()
    assert sent() == [str(short.pk)]


def test_jobs_that_nobody_asked_for_are_forgotten_after_a_day_and_others_after_ninety() -> None:
    def ended(who: str, days: float, state: Job.State = Job.State.SUCCEEDED) -> Job:
        job = jobs.enqueue(jobs.Order("reindex", requested_by=who), dispatch=False)
        Job.objects.filter(pk=job.pk).update(state=state, finished_at=days_ago(days))
        return job

    kept = [
        ended("system", 0.9),
        ended("system", 2, Job.State.FAILED),
        ended("studio:ann", 80),
        jobs.enqueue(jobs.Order("reindex", requested_by="system"), dispatch=False),
    ]
    ended("system", 1.1)
    ended("studio:ann", 91)
    assert jobs.prune() == 2
    assert set(Job.objects.values_list("pk", flat=True)) == {job.pk for job in kept}
