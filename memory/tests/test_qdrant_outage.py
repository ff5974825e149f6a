"""Qdrant that is down, slow or has lost something: nothing is lost, and it ends by itself."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from engine.testing.fake_qdrant import FakeQdrant, Fault, serving
from memory import jobs
from memory.models import Job
from memory.principal import Principal
from memory.services import (
    housekeeping,
    jobrows,
    mirroring,
    reindex,
    status,
)
from memory.tasks import HANDLERS
from memory.tests.asking import days_ago
from memory.tests.conftest import Remember, Work
from memory.tests.qdrant_server import by_meaning, local_name, pass_pause, payloads, switch_on


@pytest.fixture
def server() -> Iterator[FakeQdrant]:
    with serving() as made:
        yield made


def test_an_outage_loses_nothing_and_ends_by_itself(
    alice: Principal, remember: Remember, work: Work, server: FakeQdrant
) -> None:
    remember(alice, "likes green tea", key="a")
    work()
    switch_on(server)
    work()
    server.stop()
    remember(alice, "likes black tea", key="b")
    work()
    found, store, degraded = by_meaning(alice, "tea")
    assert sorted(found) == ["likes black tea", "likes green tea"]
    assert (store, degraded) == (local_name(), [("vectorStore", "qdrant_unreachable")])
    failed = Job.objects.get(kind="mirror", state=Job.State.FAILED)
    assert failed.error_code == "qdrant_unreachable"
    assert not mirroring.tend()
    server.start()
    Job.objects.update(finished_at=days_ago(1))
    assert mirroring.tend()
    work()
    assert len(payloads(server)) == 2
    assert by_meaning(alice, "tea")[1:] == ("qdrant", [])


def test_while_it_is_down_not_every_write_makes_a_failed_job(
    alice: Principal, remember: Remember, work: Work, server: FakeQdrant
) -> None:
    remember(alice, "tea", key="a")
    work()
    switch_on(server)
    work()
    server.stop()
    for number in range(5):
        remember(alice, f"tea number {number}", key=f"k{number}")
        work()
    assert Job.objects.filter(kind="mirror", state=Job.State.FAILED).count() == 1


def test_the_sweep_builds_again_what_the_server_has_lost(
    alice: Principal, remember: Remember, work: Work, server: FakeQdrant
) -> None:
    remember(alice, "likes green tea")
    work()
    switch_on(server)
    work()
    for name in list(server.shards.collections):
        server.shards.drop(name)
    found, store, degraded = by_meaning(alice, "tea")
    assert (found, store) == (["likes green tea"], local_name())
    assert degraded == [("vectorStore", "qdrant_missing")]
    housekeeping.tick()
    work()
    assert by_meaning(alice, "tea")[1] == "qdrant"


def test_a_build_that_was_cancelled_stays_so_until_somebody_asks(
    alice: Principal, remember: Remember, work: Work, server: FakeQdrant, manager: Principal
) -> None:
    remember(alice, "likes green tea")
    work()
    switch_on(server)
    work()
    for name in list(server.shards.collections):
        server.shards.drop(name)
    assert mirroring.tend()
    job = Job.objects.get(kind="backfill", state=Job.State.QUEUED)
    jobrows.cancel(manager, job.pk)
    assert not mirroring.tend()
    remember(alice, "likes black tea")
    work()
    assert server.shards.collections == {}
    reindex.start(manager, force=True)
    work()
    assert len(payloads(server)) == 2


def test_the_status_follows_what_really_happens(
    alice: Principal, remember: Remember, work: Work, server: FakeQdrant, manager: Principal
) -> None:
    remember(alice, "likes green tea")
    work()

    def state() -> tuple[str, str]:
        tier = status.engine_status(manager).qdrant
        return tier.state, tier.code

    assert state() == ("off", "disabled")
    switch_on(server)
    assert state() == ("warn", "qdrant_building")
    work()
    assert state() == ("on", "")
    tiers = status.engine_status(manager)
    assert tiers.vector_store.label == "qdrant"
    assert dict(tiers.qdrant.facts)["Points"] == "1"
    assert tiers.qdrant.latency_ms is not None
    server.stop()
    assert state() == ("error", "qdrant_unreachable")
    assert status.engine_status(manager).vector_store.state == "warn"
    server.start()
    pass_pause()
    assert state() == ("on", "")
    server.fail(Fault(status=500), only="/points/query")
    assert state() == ("error", "qdrant_error")


def test_a_slow_server_is_waited_for_once(
    alice: Principal, remember: Remember, work: Work, server: FakeQdrant
) -> None:
    remember(alice, "likes green tea")
    work()
    switch_on(server)
    work()
    server.fail(Fault(is_slow=True))
    begun = time.monotonic()
    for _ in range(5):
        assert by_meaning(alice, "tea")[:2] == (["likes green tea"], local_name())
    assert time.monotonic() - begun < 4.0
    server.fail(None)
    pass_pause()
    assert by_meaning(alice, "tea")[1] == "qdrant"


def test_a_job_that_died_goes_on_where_it_was(
    alice: Principal, remember: Remember, work: Work, server: FakeQdrant
) -> None:
    for number in range(3):
        remember(alice, f"tea number {number}", key=f"k{number}")
    work()
    switch_on(server)
    work()
    remember(alice, "tea number 4", key="k4")
    embed = Job.objects.get(kind="reindex", state=Job.State.QUEUED)
    jobs.run(embed.pk, HANDLERS)
    job = Job.objects.get(kind="mirror", state=Job.State.QUEUED)
    claimed = jobs.claim(job.pk, "worker@died:1")
    assert claimed is not None
    Job.objects.filter(pk=job.pk).update(lease_until=days_ago(1))
    assert jobs.run(job.pk, HANDLERS)
    job.refresh_from_db()
    assert (job.state, job.attempts) == ("succeeded", 2)
    assert len(payloads(server)) == 4
