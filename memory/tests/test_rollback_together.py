"""Writers and whoever changes which indexes are in use, at the same time; on any database."""

from __future__ import annotations

from collections.abc import Callable
from threading import Barrier, Event, Thread

import pytest
from django.db import connection, transaction

from memory.models import VectorIndex, VectorMark
from memory.principal import Principal
from memory.services import embedding, indexes, rollback
from memory.services import settings as studio_settings
from memory.tests.conftest import Remember, Work

pytestmark = pytest.mark.django_db(transaction=True)
A_MOMENT_S = 0.5


@pytest.fixture
def switched(alice: Principal, manager: Principal, remember: Remember, work: Work) -> Principal:
    """Alice with a memory, first embedded by the default model, now by the light one."""
    remember(alice, "likes tea")
    work()
    studio_settings.update(manager, {"localModel": "use-multilingual"})
    work()
    return alice


def _begin(work: Callable[[], object]) -> Thread:
    """Do it in a thread with a connection of its own."""

    def run() -> None:
        try:
            work()
        finally:
            connection.close()

    thread = Thread(target=run, daemon=True)
    thread.start()
    return thread


def test_no_write_misses_an_index_that_comes_into_use_while_it_runs(
    switched: Principal, manager: Principal, remember: Remember, work: Work
) -> None:
    written, may_end = Event(), Event()

    def write() -> None:
        with transaction.atomic():
            remember(switched, "written meanwhile", key="meanwhile")
            written.set()
            may_end.wait(30)

    writer = _begin(write)
    assert written.wait(30)
    changer = _begin(lambda: rollback.roll_back(manager))
    changer.join(A_MOMENT_S)
    assert changer.is_alive(), "it waits for the writer"
    may_end.set()
    writer.join(30)
    changer.join(30)
    marked = VectorMark.objects.filter(passage__memory__key="meanwhile")
    assert "fake-e5" in set(marked.values_list("index__model", flat=True))
    work()
    assert embedding.coverage().percent == 100.0
    active = indexes.active()
    assert active is not None
    assert active.model == "fake-e5"


def test_two_processes_that_switch_at_once_agree(switched: Principal, manager: Principal) -> None:
    studio_settings.update(manager, {"localModel": "multilingual-e5-small"})
    index = indexes.target_index()
    assert index is not None
    indexes.check(index)
    barrier, answers = Barrier(3), []

    def switch() -> None:
        barrier.wait(30)
        answers.append(indexes.switch(index))

    threads = [_begin(switch) for _ in range(3)]
    for thread in threads:
        thread.join(30)
    assert answers == [True, True, True]
    states = dict(VectorIndex.objects.values_list("model", "state"))
    assert states == {"fake-e5": "active", "fake-light": "retired"}


def test_two_processes_that_roll_back_at_once_agree(
    switched: Principal, manager: Principal
) -> None:
    barrier = Barrier(2)

    def roll_back() -> None:
        barrier.wait(30)
        rollback.roll_back(manager)

    for thread in [_begin(roll_back), _begin(roll_back)]:
        thread.join(30)
    states = sorted(VectorIndex.objects.values_list("state", flat=True))
    assert states == ["active", "retired"]
    active = indexes.active()
    assert active is not None
    assert studio_settings.get().local_model == {
        "fake-e5": "multilingual-e5-small",
        "fake-light": "use-multilingual",
    }.get(active.model)
