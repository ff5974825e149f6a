"""A client of an ASGI application that sees every piece, and can leave in the middle."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from memory.asgi import Message
from memory.gateway.mount import Gateway


@dataclass(slots=True)
class Answered:
    """What came back. ``is_whole`` when the application ended the body itself."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    pieces: list[bytes] = field(default_factory=list)
    is_whole: bool = False

    @property
    def body(self) -> bytes:
        """All pieces together."""
        return b"".join(self.pieces)

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def error(self) -> Any:
        """The error in it, in either protocol's shape."""
        return self.json()["error"]


@dataclass(frozen=True, slots=True)
class Call:
    """A request. ``leaves_when`` is asked after every piece whether the client goes now; one that
    ``stalls`` goes without taking even the head."""

    method: str
    path: str
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    leaves_when: Callable[[Answered], bool] = field(default=lambda _answered: False)
    stalls: bool = False


async def call(gateway: Gateway, wanted: Call, left: asyncio.Event | None = None) -> Answered:
    """Send one request and take in the whole answer. The client goes when ``left`` is set."""
    answered = Answered()
    gone = left or asyncio.Event()
    parts = iter([{"type": "http.request", "body": wanted.body, "more_body": False}])

    async def receive() -> Message:
        for part in parts:
            return part
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        if wanted.stalls:
            gone.set()
            await asyncio.Event().wait()
        if message["type"] == "http.response.start":
            answered.status = message["status"]
            answered.headers = {name.decode(): value.decode() for name, value in message["headers"]}
            return
        if message["body"]:
            answered.pieces.append(message["body"])
        answered.is_whole = not message.get("more_body", False)
        if wanted.leaves_when(answered):
            gone.set()

    path, _question, query = wanted.path.partition("?")
    headers = {"host": "localhost", "content-length": str(len(wanted.body)), **wanted.headers}
    scope = {
        "type": "http",
        "method": wanted.method,
        "path": path,
        "query_string": query.encode(),
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
    }
    await gateway(scope, receive, send)
    return answered
