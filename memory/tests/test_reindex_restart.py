"""A reindex that is killed goes on from its cursor; nothing is lost."""

from __future__ import annotations

from datetime import timedelta

import pytest

from memory import jobs, wiring
from memory.clock import now
from memory.models import ApiKey, Job, Passage
from memory.principal import SYSTEM, Principal
from memory.services import embedding, memories, reindex
from memory.services.drafts import MemoryDraft
from memory.tasks import HANDLERS
from memory.tests.asking import ask
from memory.tests.conftest import Work

COUNT = 1100


class Killed(BaseException):
    """Stands for a process that dies: no handler of the job may catch it."""


class DyingContext(jobs.JobContext):
    """Dies when the first page of the keyword index is written."""

    def save_params(self, **values: object) -> None:
        """Save, then die."""
        super().save_params(**values)
        raise Killed


@pytest.fixture
def large(alice: Principal, work: Work) -> Principal:
    """Alice with more passages than one page of a rebuild."""
    owner = ApiKey.objects.get(name="alice")
    memories.store_many(
        alice, owner, [MemoryDraft(f"note{place}", f"k{place:04}") for place in range(COUNT)]
    )
    Job.objects.all().delete()
    return alice


def test_a_forced_rebuild_of_the_keywords_survives_a_kill(large: Principal, work: Work) -> None:
    first, *_between, last = Passage.objects.order_by("pk").values_list("pk", flat=True)
    index = wiring.keyword_index()
    index.delete([first, last])
    assert (ask(large, "note0"), ask(large, f"note{COUNT - 1}")) == ([], [])
    job = reindex.start(SYSTEM, force=True)
    claimed = jobs.claim(job.pk, "dead")
    assert claimed is not None
    with pytest.raises(Killed):
        embedding.fill(DyingContext(claimed))
    job.refresh_from_db()
    assert job.state == Job.State.RUNNING
    cursor = job.params["keyword_cursor"]
    assert Passage.objects.filter(pk__lte=cursor).count() == 500
    assert ask(large, "note0") == ["note0"], "the first page is done"

    index.delete([first])
    assert work() == 0, "while the lease holds, nobody else takes it"
    Job.objects.filter(pk=job.pk).update(lease_until=now() - timedelta(seconds=1))
    assert jobs.run(job.pk, HANDLERS)
    job.refresh_from_db()
    assert (job.state, job.attempts, job.params["keyword_cursor"]) == (
        Job.State.SUCCEEDED,
        2,
        None,
    )
    assert ask(large, f"note{COUNT - 1}") == [f"note{COUNT - 1}"]
    assert ask(large, "note0") == [], "it went on from the cursor, and did not begin again"
    assert embedding.coverage().percent == 100.0


def test_keywords_keep_serving_while_they_are_rebuilt(large: Principal, work: Work) -> None:
    reindex.start(SYSTEM, force=True)
    assert ask(large, "note7") == ["note7"]
    work()
    assert ask(large, "note7") == ["note7"]
    assert wiring.keyword_index().count() == COUNT


def test_a_force_that_comes_while_the_job_runs_is_carried_out_as_well(
    large: Principal, work: Work
) -> None:
    job = reindex.start(SYSTEM)
    (first, *_rest) = Passage.objects.order_by("pk").values_list("pk", flat=True)
    claimed = jobs.claim(job.pk, "w")
    assert claimed is not None
    assert reindex.start(SYSTEM, force=True).pk == job.pk
    wiring.keyword_index().delete([first])
    embedding.fill(jobs.JobContext(claimed))
    assert ask(large, "note0") == ["note0"]


@pytest.mark.parametrize("finished", [None, "cancelled"])
def test_the_sweep_starts_what_waits_but_not_what_a_person_stopped(
    large: Principal, finished: str | None
) -> None:
    if finished:
        job = reindex.start(SYSTEM)
        Job.objects.filter(pk=job.pk).update(state=finished, finished_at=now())
    assert embedding.resume() is (finished is None)
