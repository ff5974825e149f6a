"""``/mcp``: the ASGI application, which also lives as long as the server.

The SDK is imported when the first client with a valid key comes. Every request stands alone, with
no session in this process, so any web process can answer any request.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.db import DatabaseError

from memory.asgi import Receive, Scope, Send, bearer
from memory.errors import Unauthorized
from memory.mcp.guard import NO_KEY, Refusal, refused
from memory.principal import Principal
from memory.service_threads import ServiceThreads

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

logger = logging.getLogger("memory.mcp")

MAX_BODY_BYTES: Final = 4 * 2**20
"""Room for the longest memory with every character escaped."""
STOP_WITHIN_S: Final = 1.0
_CALLER: Final = "memory.principal"
_BUSY: Final = Refusal(503, "The database cannot be used now. Try again.")


class Mount:
    """Answers MCP over streamable HTTP for callers with an API key."""

    def __init__(self) -> None:
        self._threads = ServiceThreads(settings.MEMORY_STUDIO_THREADS, name="mcp")
        self._starting = asyncio.Lock()
        self._manager: StreamableHTTPSessionManager | None = None
        self._life: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended = threading.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        refusal = refused(scope)
        if refusal is None:
            caller = await self._caller(bearer(scope))
            if isinstance(caller, Principal):
                manager = await self._running()
                await manager.handle_request({**scope, _CALLER: caller}, receive, send)
                return
            refusal = caller
        await refusal.send(send)

    def start(self) -> None:
        """Nothing: it starts with its first client."""

    def stop(self) -> None:
        """End what is being answered, and let go of the threads."""
        if self._loop is not None and self._life is not None:
            self._loop.call_soon_threadsafe(self._life.cancel)
            self._ended.wait(STOP_WITHIN_S)
        self._threads.close()

    async def _caller(self, secret: str) -> Principal | Refusal:
        if not secret:
            return NO_KEY
        try:
            return await self._threads.run(lambda _stop: _authenticated(secret))
        except Unauthorized as error:
            return replace(NO_KEY, message=error.message)
        except DatabaseError:
            logger.exception("the database failed")
            return _BUSY

    async def _running(self) -> StreamableHTTPSessionManager:
        async with self._starting:
            if self._manager is None:
                # In a thread: importing the SDK takes a second.
                manager = await asyncio.to_thread(_make_manager, self._threads)
                self._loop, started = asyncio.get_running_loop(), asyncio.Event()
                self._life = self._loop.create_task(self._live(manager, started))
                await started.wait()
                self._manager = manager
            return self._manager

    async def _live(self, manager: StreamableHTTPSessionManager, started: asyncio.Event) -> None:
        try:
            async with manager.run():
                started.set()
                await asyncio.Event().wait()
        finally:
            self._ended.set()


def _authenticated(secret: str) -> Principal:
    from memory.services import keys

    return keys.authenticate(secret)


def _make_manager(threads: ServiceThreads) -> StreamableHTTPSessionManager:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from memory.mcp.server import build

    return StreamableHTTPSessionManager(
        build(_identify, threads),
        # A client that leaves is noticed on a stream only.
        json_response=False,
        stateless=True,
        # Hosts and origins have been checked by the studio's own rule.
        security_settings=None,
        max_request_body_size=min(MAX_BODY_BYTES, settings.MEMORY_STUDIO_MAX_BODY_BYTES),
    )


def _identify(context: Any) -> Principal:
    caller: Principal = context.request.scope[_CALLER]
    return caller
