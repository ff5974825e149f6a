"""``/healthz`` and ``/readyz`` for whoever watches the process: no sign-in, and no detail.

They are answered beside Django: a probe names the process by whatever address it has, and it must
not wait behind requests.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Final

from memstudio.bridge import Receive, Scope, Send

ALIVE: Final = "/healthz"
READY: Final = "/readyz"
ANSWER_WITHIN_S: Final = 3.0
KEPT_S: Final = 1.0
"""So long an answer holds: a flood of probes asks the database once a second."""


async def alive(scope: Scope, _receive: Receive, send: Send) -> None:
    """The process answers."""
    await _answer(scope, send, is_good=True)


class Ready:
    """The ASGI application of ``/readyz``; ``check`` may take its time, and runs in a thread."""

    def __init__(
        self, check: Callable[[], bool], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._check = check
        self._clock = clock
        self._asking: asyncio.Task[bool] | None = None
        self._is_ready = False
        self._until = float("-inf")

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        """Whether requests can be served now."""
        await _answer(scope, send, is_good=await self._ask())

    async def _ask(self) -> bool:
        if self._clock() < self._until:
            return self._is_ready
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(asyncio.to_thread(self._check))
        try:
            # A database that hangs keeps its one thread; probes do not add more.
            found = await asyncio.wait_for(asyncio.shield(self._asking), ANSWER_WITHIN_S)
        except Exception:
            found = False
        self._is_ready, self._until = found, self._clock() + KEPT_S
        return found


def database_is_ready() -> bool:
    """Whether the database answers and has every migration of this version."""
    from django.db import connection

    from memstudio import startup

    try:
        connection.ensure_connection()
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        return startup.is_current()
    finally:
        with contextlib.suppress(Exception):
            connection.close()


async def _answer(scope: Scope, send: Send, *, is_good: bool) -> None:
    body = b"ok\n" if is_good else b"not ready\n"
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
    ]
    status = 200 if is_good else 503
    await send({"type": "http.response.start", "status": status, "headers": headers})
    sent = b"" if scope.get("method") == "HEAD" else body
    await send({"type": "http.response.body", "body": sent})
