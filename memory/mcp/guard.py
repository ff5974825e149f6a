"""What is refused before the protocol is spoken: other methods, foreign hosts and origins.

A page of the web that a browser was led to must not reach a studio of the same machine (DNS
rebinding): the host must be one of the studio's, and an origin, where there is one, too.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from django.conf import settings
from django.utils.http import is_same_domain

from memory.asgi import Scope, Send, header, is_own_host

Headers = tuple[tuple[bytes, bytes], ...]

INVALID_REQUEST: Final = -32600
"""The error code of JSON-RPC for what is no valid request."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer that ends the matter, in the shape of JSON-RPC."""

    status: int
    message: str
    headers: Headers = ()

    async def send(self, send: Send) -> None:
        """Send it as the whole response."""
        error = {"code": INVALID_REQUEST, "message": self.message}
        answer = {"jsonrpc": "2.0", "id": None, "error": error}
        body = json.dumps(answer, ensure_ascii=False).encode()
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            *self.headers,
        ]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


NO_KEY: Final = Refusal(
    401,
    "An API key is needed, as the header “Authorization: Bearer ms_…”.",
    ((b"www-authenticate", b"Bearer"),),
)


def refused(scope: Scope) -> Refusal | None:
    """Why a request is not answered at all; None when it is."""
    if not is_own_host(header(scope, b"host")):
        return Refusal(421, "The studio is not called by this host name.")
    if not _is_own_origin(header(scope, b"origin")):
        return Refusal(403, "Pages of this origin may not call the studio.")
    if scope["method"] != "POST":
        # Nothing is sent that was not asked for, so there is no stream to listen to.
        message = "Only POST is answered here: this is the MCP endpoint (streamable HTTP)."
        return Refusal(405, message, ((b"allow", b"POST"),))
    return None


def _is_own_origin(origin: str) -> bool:
    if not origin or origin in settings.CSRF_TRUSTED_ORIGINS:
        return True
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    if parts.scheme not in ("http", "https"):
        return False
    trusted = [urlsplit(each) for each in settings.CSRF_TRUSTED_ORIGINS if "*" in each]
    if any(
        each.scheme == parts.scheme and is_same_domain(parts.netloc, each.netloc.lstrip("*"))
        for each in trusted
    ):
        return True
    return is_own_host(parts.netloc)
