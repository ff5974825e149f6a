"""Services run in threads, because they use the database; the event loop only waits for them."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Final, TypeVar

from django.db import close_old_connections, connections

T = TypeVar("T")


CLOSE_WITHIN_S: Final = 0.5


class ServiceThreads:
    """A few threads, each with a database connection of its own."""

    def __init__(self, count: int, *, name: str) -> None:
        self._alive = 0
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(count, thread_name_prefix=name, initializer=self._begun)

    async def run(self, work: Callable[[threading.Event], T]) -> T:
        """Call ``work`` in a thread. Who is cancelled sets the event that ``work`` is given.

        Work that does not look at it comes to its end, and nobody hears of its result.
        """
        stop = threading.Event()
        loop = asyncio.get_running_loop()
        try:
            # With what is known of the request, such as the trace that it belongs to.
            context = contextvars.copy_context()
            return await loop.run_in_executor(self._pool, context.run, self._guarded, work, stop)
        except asyncio.CancelledError:
            stop.set()
            raise

    def close(self) -> None:
        """Let go of the threads with their connections; what runs ends with the process."""
        self._closed.set()
        with self._lock:
            # Each thread takes one, because it waits for the others.
            meeting = threading.Barrier(max(self._alive, 1))
            leaving = [self._pool.submit(_leave, meeting) for _ in range(self._alive)]
        self._pool.shutdown(wait=False)
        wait(leaving, CLOSE_WITHIN_S)

    def _begun(self) -> None:
        with self._lock:
            self._alive += 1

    def _guarded(self, work: Callable[[threading.Event], T], stop: threading.Event) -> T:
        if self._closed.is_set():
            raise CancelledError
        close_old_connections()
        try:
            return work(stop)
        finally:
            if self._closed.is_set():
                # It was too busy to take its leave.
                connections.close_all()
            else:
                close_old_connections()


def _leave(meeting: threading.Barrier) -> None:
    with suppress(threading.BrokenBarrierError):
        meeting.wait(CLOSE_WITHIN_S)
    connections.close_all()
