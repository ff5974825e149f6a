"""The job that gives memories their vectors: fill, failure, cancel, and what it leaves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from celery import current_app
from django.db import transaction

from engine.errors import EmbeddingFailed
from engine.types import Mode
from memory import jobs
from memory.models import Job, Passage, VectorIndex, VectorMark
from memory.principal import SYSTEM, Principal
from memory.services import embedding, jobrows, memories, reindex
from memory.services import settings as studio_settings
from memory.tasks import HANDLERS
from memory.tests.asking import ask, days_ago
from memory.tests.conftest import Remember, Work
from memory.tests.watched import outage, watch


def _many(alice: Principal, remember: Remember, count: int) -> None:
    for place in range(count):
        remember(alice, f"note{place} of tea", key=f"k{place}")


def _only_job() -> Job:
    return Job.objects.get(kind="reindex")


def _calls_until(count: int, then: Any) -> Any:
    seen: list[int] = []

    def hook(_texts: Sequence[str]) -> None:
        seen.append(1)
        if len(seen) > count:
            then()

    return hook


def test_reindex_08_the_job_runs_to_the_end(
    alice: Principal, remember: Remember, work: Work
) -> None:
    _many(alice, remember, 250)
    assert reindex.pending() == 250
    assert work() == 1
    job = _only_job()
    assert job.result == {"processed": 250, "errors": 0, "pending": 0}
    assert (job.state, job.done, job.total, job.percent) == (Job.State.SUCCEEDED, 250, 250, 100)
    assert (reindex.pending(), embedding.coverage().percent) == (0, 100.0)


def test_ensure_ready_01_the_first_job_makes_the_active_index(
    alice: Principal, remember: Remember, work: Work
) -> None:
    assert (embedding.active_index(), embedding.coverage().signature) == (None, None)
    remember(alice, "likes tea")
    work()
    index = VectorIndex.objects.get()
    assert (index.state, index.dim) == (VectorIndex.State.ACTIVE, 64)
    assert index.signature == f"{index.source}:{index.model}:{index.revision}:64"


def test_vec_meta_01_02_a_fresh_database_has_no_index_and_full_coverage(first_start: None) -> None:
    covered = embedding.coverage()
    assert (covered.signature, covered.building, covered.passages) == (None, None, 0)
    assert covered.percent == 100.0


def test_ensure_ready_04_a_source_that_does_not_know_itself_yet_is_asked_again(
    alice: Principal, remember: Remember, work: Work, settings: Any
) -> None:
    source = watch(settings, outage)
    remember(alice, "likes tea")
    work()
    assert _only_job().state == Job.State.FAILED
    source.before = lambda texts: None
    Job.objects.update(finished_at=days_ago(1))
    assert embedding.resume()
    work()
    assert embedding.coverage().percent == 100.0


def test_reindex_02_without_a_source_nothing_is_done_and_everything_still_waits(
    alice: Principal, manager: Principal, remember: Remember, work: Work
) -> None:
    studio_settings.update(manager, {"embeddingSource": "remote"})
    _many(alice, remember, 2)
    work()
    assert _only_job().result == {"processed": 0, "errors": 0, "pending": 2}
    assert reindex.pending() == 2


def test_an_outage_fails_the_job_and_costs_no_text_an_attempt(
    alice: Principal, remember: Remember, work: Work, settings: Any
) -> None:
    source = watch(settings, _calls_until(2, lambda: outage([])))
    _many(alice, remember, 40)
    work()
    job = _only_job()
    assert (job.state, job.error_code) == (Job.State.FAILED, "timeout")
    assert embedding.coverage().indexed == 32
    assert set(VectorMark.objects.values_list("attempts", "error")) == {(0, "")}
    source.before = lambda texts: None
    jobrows.retry(SYSTEM, job.pk)
    work()
    assert embedding.coverage().percent == 100.0
    assert len(source.documents) == 40, "nothing is embedded twice"


def test_a_text_that_cannot_be_embedded_is_set_aside_alone(
    alice: Principal, remember: Remember, work: Work, settings: Any
) -> None:
    def refuse_poison(texts: Sequence[str]) -> None:
        if any("poison" in text for text in texts):
            raise EmbeddingFailed(code="invalid_response")

    watch(settings, refuse_poison)
    _many(alice, remember, 20)
    poisoned = remember(alice, "poison", key="k20")
    _many(alice, remember, 5)
    work()
    assert _only_job().state == Job.State.SUCCEEDED
    (mark,) = VectorMark.objects.select_related("passage")
    assert (mark.passage.memory_id, mark.attempts) == (poisoned.pk, embedding.MAX_ATTEMPTS)
    covered = embedding.coverage()
    assert (covered.pending, covered.failed) == (1, 1)
    assert not embedding.resume()
    memories.update(alice, poisoned.pk, {"content": "harmless"})
    work()
    assert embedding.coverage().percent == 100.0


def test_cancel_in_the_middle_keeps_what_is_done(
    alice: Principal, remember: Remember, work: Work, settings: Any
) -> None:
    source = watch(settings)
    _many(alice, remember, 64)

    source.before = _calls_until(1, lambda: jobrows.cancel(SYSTEM, _only_job().pk))
    work()
    job = _only_job()
    assert job.state == Job.State.CANCELLED
    assert embedding.coverage().indexed == 32
    assert not embedding.resume(), "what a person stopped does not start by itself"
    source.before = lambda texts: None
    reindex.start(SYSTEM)
    work()
    assert embedding.coverage().percent == 100.0


def test_a_queued_job_is_cancelled_at_once(
    alice: Principal, remember: Remember, work: Work
) -> None:
    remember(alice, "likes tea")
    cancelled = jobrows.cancel(SYSTEM, _only_job().pk)
    assert (cancelled.state, cancelled.finished_at is not None) == (Job.State.CANCELLED, True)
    assert work() == 0


def test_a_memory_that_changes_while_it_is_embedded_keeps_its_mark(
    alice: Principal, remember: Remember, work: Work, settings: Any
) -> None:
    source = watch(settings)
    memory = remember(alice, "likes tea", key="drink")

    def change(_texts: Sequence[str]) -> None:
        source.before = lambda texts: None
        memories.update(alice, memory.pk, {"content": "likes cocoa"})

    source.before = change
    work()
    assert source.documents == ["drink\nlikes tea", "drink\nlikes cocoa"]
    assert embedding.coverage().percent == 100.0
    assert ask(alice, "cocoa", mode=Mode.VECTOR) == ["likes cocoa"]


def test_a_memory_that_is_erased_while_it_is_embedded_is_no_error(
    alice: Principal, remember: Remember, work: Work, settings: Any
) -> None:
    source = watch(settings)
    memory = remember(alice, "likes tea")

    def erase(_texts: Sequence[str]) -> None:
        source.before = lambda texts: None
        memories.delete(alice, memory.pk, purge=True)

    source.before = erase
    work()
    assert _only_job().state == Job.State.SUCCEEDED
    assert Passage.objects.count() == 0


def _waiting(queue: Any) -> int:
    """Messages in a queue; on Redis an empty one does not exist."""
    try:
        return int(queue.qsize())
    except queue.channel.connection.client.channel_errors:
        return 0


def test_embed_soon_sends_only_the_jobs_id_and_only_after_commit(
    alice: Principal,
    remember: Remember,
    work: Work,
    django_capture_on_commit_callbacks: Any,
) -> None:
    work()
    with current_app.connection_for_write() as broker:
        queue = broker.SimpleQueue("bulk")
        queue.clear()
        with django_capture_on_commit_callbacks(execute=True):
            with pytest.raises(RuntimeError), transaction.atomic():
                remember(alice, "never stored")
                raise RuntimeError("rolled back")
            assert not Job.objects.exists()
            remember(alice, "likes tea")
            remember(alice, "likes cocoa")
            assert _waiting(queue) == 0
        job = _only_job()
        assert _waiting(queue) == 1
        message = queue.get(block=False)
        assert (message.headers["task"], message.payload[0]) == (jobs.TASK, [str(job.pk)])
        assert message.payload[1] == {}


def test_reindex_04_09_force_marks_every_passage_again(
    alice: Principal, manager: Principal, remember: Remember, work: Work, settings: Any
) -> None:
    source = watch(settings)
    _many(alice, remember, 3)
    work()
    reindex.start(manager, force=True)
    assert reindex.pending() == 3
    assert len(ask(alice, "tea", mode=Mode.VECTOR)) == 3, "both keep serving meanwhile"
    work()
    assert len(source.documents) >= 6
    assert embedding.coverage().percent == 100.0


def test_reindex_06_a_mark_goes_when_its_vector_comes(
    alice: Principal, remember: Remember, work: Work
) -> None:
    _many(alice, remember, 3)
    work()
    reindex.start(SYSTEM, force=True)
    index = embedding.active_index()
    assert index is not None
    index.marks.filter(passage__memory__key="k0").delete()
    assert reindex.pending() == 2
    assert HANDLERS["reindex"] is embedding.fill


def test_a_memory_that_comes_in_the_last_moment_of_a_job_is_not_left_waiting(
    alice: Principal, remember: Remember, work: Work
) -> None:
    remember(alice, "likes tea")

    def fill_and_be_late(context: jobs.JobContext) -> dict[str, int]:
        result = embedding.fill(context)
        remember(alice, "likes cocoa")
        return result

    job = _only_job()
    assert jobs.run(job.pk, {"reindex": fill_and_be_late})
    assert Job.objects.filter(state=Job.State.QUEUED, kind="reindex").count() == 1
    assert work() == 1
    assert embedding.coverage().pending == 0
    assert not Job.objects.filter(state__in=Job.ACTIVE).exists()


def test_a_memory_that_a_job_only_counts_any_more_is_not_left_waiting(
    alice: Principal, remember: Remember
) -> None:
    remember(alice, "likes tea")

    def fill_and_count_one_that_is_late(context: jobs.JobContext) -> dict[str, int]:
        result = embedding.fill(context)
        remember(alice, "likes cocoa")
        return {**result, "pending": reindex.pending()}

    assert jobs.run(_only_job().pk, {"reindex": fill_and_count_one_that_is_late})
    assert Job.objects.filter(state=Job.State.QUEUED, kind="reindex").count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_job_that_ends_between_an_order_and_its_commit_is_followed_by_another(
    alice: Principal, remember: Remember, work: Work
) -> None:
    remember(alice, "likes tea")
    work()
    remember(alice, "likes cocoa")
    active = Job.objects.filter(state__in=Job.ACTIVE)
    job = active.get()
    with transaction.atomic():
        remember(alice, "likes coffee")
        assert active.get() == job, "the one that is active was the answer"
        # Its last look was before this commit, and saw no mark of the third.
        Job.objects.filter(pk=job.pk).update(state=Job.State.SUCCEEDED, result={"pending": 0})
    assert active.get() != job
