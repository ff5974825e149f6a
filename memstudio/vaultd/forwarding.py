"""Who answers for vaults in a web that does not keep keys: vaultd, or the web itself.

The web answers for open vaults, and for whatever could not be sent because vaultd is away: what
needs no key works then, a lock among it, and the rest is refused with ``vaultd_unavailable``.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from contextlib import suppress
from typing import Final

from django.conf import settings

from memory.asgi import bearer, header, is_own_host
from memory.mcp.guard import Refusal, refused
from memory.mcp.mount import MAX_BODY_BYTES
from memstudio.bridge import AsgiApplication, Message, Receive, Scope, Send
from memstudio.vaultd.incoming import Gone, Incoming
from memstudio.vaultd.routing import API, Routing, named_by_call, named_in
from memstudio.vaultd.way import Broken, NotSent, Way

CODE: Final = "vaultd_unavailable"
MESSAGE: Final = (
    "The process that keeps the keys of sealed vaults (vaultd) broke off; "
    "what was asked for may have been done."
)
PAGE: Final = "/vaults/unavailable/"
SAFE: Final = frozenset({"GET", "HEAD"})
CLOSE_WITHIN_S: Final = 0.5


class Forwarding:
    """Passes on what concerns sealed vaults; lives as long as the server."""

    def __init__(self, origin: str) -> None:
        self._way = Way(origin)
        self._routing = Routing()
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Nothing: it connects with the first request."""

    def stop(self) -> None:
        """Close the connections and let go of the thread."""
        if self._loop is not None:
            closing = asyncio.run_coroutine_threadsafe(self._way.close(), self._loop)
            with suppress(TimeoutError):
                closing.result(CLOSE_WITHIN_S)
        self._routing.close()

    def pages(self, here: AsgiApplication) -> AsgiApplication:
        """The application for pages and REST; ``here`` answers what is not passed on."""

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            if not await self._is_for_vaultd(scope):
                await here(scope, receive, send)
                return
            incoming = Incoming(receive)
            with suppress(Gone):
                await incoming.look()
                try:
                    await self._pass_on(scope, incoming, send, here)
                except Broken:
                    await _tell(scope, send, here)

        return answer

    def mcp(self, here: AsgiApplication) -> AsgiApplication:
        """The application for MCP, whose messages name vaults; each stands alone."""

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            if refused(scope) is not None or not bearer(scope):
                await here(scope, receive, send)
                return
            incoming = Incoming(receive)
            with suppress(Gone):
                body = await incoming.whole(MAX_BODY_BYTES)
                named = named_by_call(body) if body is not None else []
                if not any([await self._routing.is_sealed(each) for each in named]):
                    await here(scope, incoming.receive, send)
                    return
                try:
                    await self._pass_on(scope, incoming, send, here)
                except Broken:
                    await Refusal(503, MESSAGE).send(send)

        return answer

    async def _pass_on(
        self, scope: Scope, incoming: Incoming, send: Send, here: AsgiApplication
    ) -> None:
        self._loop = asyncio.get_running_loop()
        is_harmless = scope["method"] in SAFE and not incoming.has_body
        try:
            await self._way.send(scope, incoming, send)
        except NotSent:
            await here(scope, incoming.receive, send)
        except Broken:
            if not is_harmless:
                raise
            await here(scope, incoming.receive, send)

    async def _is_for_vaultd(self, scope: Scope) -> bool:
        """Not what the web refuses anyhow: by the host's name, or as too large."""
        size = header(scope, b"content-length")
        if size.isdecimal() and int(size) > settings.MEMORY_STUDIO_MAX_BODY_BYTES:
            return False
        if not is_own_host(header(scope, b"host")):
            return False
        named = named_in(scope["path"])
        return named is None or await self._routing.is_sealed(named)


async def _tell(scope: Scope, send: Send, here: AsgiApplication) -> None:
    """Say that vaultd broke off: a page in the studio, the one shape of errors elsewhere."""
    if not scope["path"].startswith(API):
        kept = [entry for entry in scope["headers"] if not entry[0].startswith(b"content-")]
        place = {"path": PAGE, "raw_path": PAGE.encode(), "query_string": b""}
        await here({**scope, **place, "method": "GET", "headers": kept}, _nothing, send)
        return
    request_id = uuid.uuid4().hex[:12]
    error = {"code": CODE, "message": MESSAGE, "requestId": request_id}
    body = json.dumps({"error": error}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        (b"cache-control", b"no-store"),
        (b"x-request-id", request_id.encode()),
    ]
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _nothing() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}
