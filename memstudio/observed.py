"""Requests that are answered beside Django are counted, timed and traced like the others."""

from __future__ import annotations

import time
from typing import Final

from engine import spans
from memory import measured
from memory.observing import describe
from memstudio.bridge import AsgiApplication, Message, Receive, Scope, Send

NO_ANSWER: Final = 499
"""What is noted when the client left before there was a status."""


class Observed:
    """An ASGI application whose requests are noted under one route, to the end of their answer."""

    def __init__(self, application: AsgiApplication, route: str) -> None:
        self._application = application
        self._route = route

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request and note how long it took."""
        started = time.perf_counter()
        status = NO_ANSWER

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        parent = _header(scope, b"traceparent")
        try:
            with spans.span("request", "server", parent=parent) as span:
                await self._application(scope, receive, watched)
                describe(span, scope["method"], self._route, status)
        finally:
            took_s = time.perf_counter() - started
            measured.request(scope["method"], self._route, status, took_s)


def _header(scope: Scope, name: bytes) -> str:
    found = (value for key, value in scope.get("headers", ()) if key == name)
    return str(next(found, b"").decode("latin-1"))
