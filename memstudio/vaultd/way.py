"""The way to vaultd: a request is passed on as it comes, and its answer back as it comes."""

from __future__ import annotations

import logging
import ssl
import time
from typing import Final
from urllib.parse import quote

import httpcore

from memory import measured
from memstudio.bridge import Scope, Send
from memstudio.vaultd.headers import REFUSED, back, onward
from memstudio.vaultd.incoming import Incoming

logger = logging.getLogger("memstudio.vaultd")

TIMES: Final = {"connect": 3.0, "write": 60.0, "read": 900.0}
"""Seconds. A question may take minutes, with all attempts of all services."""
KEEPALIVE_S: Final = 15.0
"""Shorter than the server keeps an idle connection, so that none is closed as it is used."""
MOST_IDLE: Final = 32
ROUTE: Final = "(vaultd)"
"""What the metrics of a web call these requests; vaultd counts them by their routes."""
LEFT: Final = 499
"""What is noted when the client left before there was an answer."""
_UNREACHED: Final = (httpcore.ConnectError, httpcore.ConnectTimeout, httpcore.PoolTimeout)
_FAILED: Final = (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError)


class NotSent(Exception):
    """vaultd cannot be reached; nothing of the request is lost."""


class Broken(Exception):
    """vaultd went away after the request was sent, and before an answer began."""


class Way:
    """Connections that stay open, and one line in the log for an outage. Of one event loop."""

    def __init__(self, origin: str) -> None:
        self._origin = origin
        self._url = httpcore.URL(f"{origin}/")
        self._pool: httpcore.AsyncConnectionPool | None = None
        self._is_down = False

    async def send(self, scope: Scope, incoming: Incoming, send: Send) -> None:
        """Pass a request on, and its answer back; a client that leaves ends both.

        Raises ``NotSent`` and ``Broken``, and ``Gone`` when the client has left. An answer that
        breaks off is cut for the client as well.
        """
        started, status = time.perf_counter(), LEFT
        try:
            response = await self._head(scope, incoming)
            try:
                status = response.status
                await incoming.while_there(_pass_back(response, send))
            finally:
                await response.aclose()
        except NotSent:
            status = 0
            raise
        except Broken:
            status = 503
            raise
        finally:
            incoming.end()
            if status:
                measured.request(scope["method"], ROUTE, status, time.perf_counter() - started)

    async def close(self) -> None:
        """Close every connection."""
        if self._pool is not None:
            await self._pool.aclose()

    async def _head(self, scope: Scope, incoming: Incoming) -> httpcore.Response:
        """The answer of which the head has come."""
        request = httpcore.Request(
            scope["method"],
            httpcore.URL(
                scheme=self._url.scheme,
                host=self._url.host,
                port=self._url.port,
                target=_target(scope),
            ),
            headers=onward(scope, has_body=incoming.has_body),
            content=incoming.body() if incoming.has_body else None,
            extensions={"timeout": TIMES},
        )
        try:
            response = await incoming.while_there(self._connections().handle_async_request(request))
        except _UNREACHED as error:
            self._note_loss(error)
            raise NotSent from error
        except _FAILED as error:
            self._note_loss(error)
            raise Broken from error
        if any(name.lower() == REFUSED for name, _value in response.headers):
            await response.aclose()
            self._note_loss("it belongs to another installation")
            raise Broken
        self._note_answer()
        return response

    def _connections(self) -> httpcore.AsyncConnectionPool:
        # It belongs to the loop of the server, which runs by now.
        if self._pool is None:
            is_tls = self._url.scheme == b"https"
            self._pool = httpcore.AsyncConnectionPool(
                ssl_context=ssl.create_default_context() if is_tls else None,
                max_connections=None,
                max_keepalive_connections=MOST_IDLE,
                keepalive_expiry=KEEPALIVE_S,
            )
        return self._pool

    def _note_loss(self, reason: Exception | str) -> None:
        if not self._is_down:
            text = str(reason) or type(reason).__name__
            logger.warning("vaultd at %s does not answer: %s", self._origin, text)
        self._is_down = True

    def _note_answer(self) -> None:
        if self._is_down:
            logger.warning("vaultd at %s answers again", self._origin)
        self._is_down = False


async def _pass_back(response: httpcore.Response, send: Send) -> None:
    headers = back(response.headers)
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    async for chunk in response.aiter_stream():
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


def _target(scope: Scope) -> bytes:
    # As it was sent: an encoded slash is part of a name.
    path = scope.get("raw_path") or quote(scope["path"]).encode()
    query = scope.get("query_string", b"")
    return bytes(path + b"?" + query if query else path)
