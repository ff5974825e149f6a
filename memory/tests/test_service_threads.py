"""Work in threads hears that nobody waits any more."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest
from django.db import connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from memory.service_threads import ServiceThreads


@pytest.fixture
def threads() -> Iterator[ServiceThreads]:
    made = ServiceThreads(1, name="test")
    yield made
    made.close()


def test_work_answers(threads: ServiceThreads, transactional_db: None) -> None:
    assert asyncio.run(threads.run(lambda _stop: 7)) == 7


def test_a_cancelled_call_tells_its_work(threads: ServiceThreads, transactional_db: None) -> None:
    begun, told = threading.Event(), threading.Event()

    def work(stop: threading.Event) -> None:
        begun.set()
        assert stop.wait(10)
        told.set()

    async def cancel_it() -> None:
        call = asyncio.create_task(threads.run(work))
        await asyncio.to_thread(begun.wait, 10)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(cancel_it())
    assert told.wait(10)


def test_a_thread_that_is_busy_at_the_end_closes_its_connection_after(
    transactional_db: None,
) -> None:
    threads = ServiceThreads(1, name="test")
    begun, go = threading.Event(), threading.Event()
    used: list[BaseDatabaseWrapper] = []

    def work(_stop: threading.Event) -> None:
        connection.ensure_connection()
        used.append(connections["default"])
        begun.set()
        assert go.wait(10)

    async def close_meanwhile() -> None:
        call = asyncio.create_task(threads.run(work))
        await asyncio.to_thread(begun.wait, 10)
        await asyncio.to_thread(threads.close)
        go.set()
        await call

    asyncio.run(close_meanwhile())
    assert used[0].connection is None
