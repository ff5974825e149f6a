"""Services run in threads, because they use the database; the event loop only waits for them."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.db import close_old_connections

T = TypeVar("T")


class ServiceThreads:
    """A few threads, each with a database connection of its own."""

    def __init__(self, count: int, *, name: str) -> None:
        self._pool = ThreadPoolExecutor(count, thread_name_prefix=name)

    async def run(self, work: Callable[[threading.Event], T]) -> T:
        """Call ``work`` in a thread. Who is cancelled sets the event that ``work`` is given.

        Work that does not look at it comes to its end, and nobody hears of its result.
        """
        stop = threading.Event()
        loop = asyncio.get_running_loop()
        try:
            # With what is known of the request, such as the trace that it belongs to.
            context = contextvars.copy_context()
            return await loop.run_in_executor(self._pool, context.run, _guarded, work, stop)
        except asyncio.CancelledError:
            stop.set()
            raise

    def close(self) -> None:
        """Let go of the threads; what runs is left to end with the process."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def _guarded(work: Callable[[threading.Event], T], stop: threading.Event) -> T:
    close_old_connections()
    try:
        return work(stop)
    finally:
        close_old_connections()
