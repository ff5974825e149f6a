"""The one door of vaultd: our own webs, requests about vaults, and whoever watches the process."""

from __future__ import annotations

import json
from typing import Final

from memory.asgi import header
from memstudio import health
from memstudio.bridge import AsgiApplication, Receive, Scope, Send
from memstudio.vaultd.headers import PROOF, REFUSED, arrived
from memstudio.vaultd.proof import is_proven
from memstudio.vaultd.routing import API, MCP, PAGES

METRICS: Final = "/metrics"
WATCHING: Final = frozenset({health.ALIVE, health.READY, METRICS})
"""Without our proof; ``/metrics`` asks for a credential of its own."""
SERVED: Final = (PAGES, API, MCP)


class Door:
    """An ASGI application that lets in what ``inside`` may answer."""

    def __init__(self, inside: AsgiApplication) -> None:
        self._inside = inside

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request in, or refuse it before anything of it is read."""
        if scope["type"] != "http" or scope["path"] in WATCHING:
            await self._inside(scope, receive, send)
        elif not is_proven(header(scope, PROOF).encode("latin-1")):
            await _refuse(send, 403, "forbidden", "Only webs of this studio are answered here.")
        elif not _is_served(scope["path"]):
            await _refuse(send, 404, "not_found", "Only vaults are served here.")
        else:
            await self._inside(arrived(scope), receive, send)


def _is_served(path: str) -> bool:
    return any(path == prefix or path.startswith(f"{prefix}/") for prefix in SERVED)


async def _refuse(send: Send, status: int, code: str, message: str) -> None:
    body = json.dumps({"error": {"code": code, "message": message}}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        (b"connection", b"close"),
        (REFUSED, b"1"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
