"""The ASGI front: prefix routes to async applications, the bridge for the rest, the lifespan."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Protocol

from memstudio.bridge import AsgiApplication, Bridge, Receive, Scope, Send

logger = logging.getLogger("memstudio.front")


class Service(Protocol):
    """Something that lives as long as the server."""

    def start(self) -> None:
        """Start; returns soon."""
        ...

    def stop(self) -> None:
        """Stop; returns when it has stopped, or when it has waited long enough."""
        ...


class Front:
    """One port for everything.

    ``mounts`` maps a prefix without a slash at its end (``/v1``) to the ASGI application that
    answers it; the path is passed on whole. Services start before the first request, in order,
    and stop in the reverse order.
    """

    def __init__(
        self,
        bridge: Bridge,
        *,
        mounts: Mapping[str, AsgiApplication] | None = None,
        services: Sequence[Service] = (),
    ) -> None:
        self._bridge = bridge
        # The longest prefix wins.
        self._mounts = sorted((mounts or {}).items(), key=lambda entry: -len(entry[0]))
        self._services = tuple(services)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or follow the server's life."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._route(scope["path"])(scope, receive, send)
        else:
            # Web sockets: nothing here speaks them.
            await send({"type": "websocket.close", "code": 1000})

    def _route(self, path: str) -> AsgiApplication:
        for prefix, application in self._mounts:
            if path == prefix or path.startswith(f"{prefix}/"):
                return application
        return self._bridge

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            for service in self._services:
                await asyncio.to_thread(service.start)
        except Exception as error:
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        for service in reversed(self._services):
            await asyncio.to_thread(_stop, service)
        self._bridge.close()
        await send({"type": "lifespan.shutdown.complete"})


def _stop(service: Service) -> None:
    try:
        service.stop()
    except Exception:
        logger.exception("%s did not stop", type(service).__name__)
