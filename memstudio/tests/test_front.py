"""The front: routes by prefix, services that live as long as the server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from memstudio.bridge import Bridge, Environ, Message, Receive, Scope, Send
from memstudio.front import Front


def plain(_environ: Environ, start_response: Any) -> Iterable[bytes]:
    start_response("200 OK", [("Content-Length", "4")])
    return [b"wsgi"]


async def mounted(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send({"type": "http.response.body", "body": b"asgi"})


class Recorder:
    """A service that notes what happens to it."""

    def __init__(self, name: str, events: list[str], fails: bool = False) -> None:
        self.name, self.events, self.fails = name, events, fails

    def start(self) -> None:
        if self.fails:
            raise OSError("no room")
        self.events.append(f"start {self.name}")

    def stop(self) -> None:
        self.events.append(f"stop {self.name}")


def answer(front: Front, path: str) -> bytes:
    """The body of the answer to one request."""
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request"}

    async def send(message: Message) -> None:
        sent.append(message)

    request = {
        "type": "http",
        "method": "GET",
        "path": path,
        "query_string": b"",
        "http_version": "1.1",
        "headers": [],
    }
    asyncio.run(front(request, receive, send))
    return b"".join(message.get("body", b"") for message in sent)


def live(front: Front) -> list[Message]:
    """Start the front and stop it; what it said."""
    said: list[Message] = []
    told = iter([{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}])

    async def receive() -> Message:
        return next(told)

    async def send(message: Message) -> None:
        said.append(message)

    asyncio.run(front({"type": "lifespan"}, receive, send))
    return said


def bridge() -> Bridge:
    return Bridge(plain, threads=1, max_body_bytes=1000)


def test_a_mount_answers_its_prefix_and_nothing_else() -> None:
    front = Front(bridge(), mounts={"/v1": mounted})
    assert answer(front, "/v1") == answer(front, "/v1/models") == b"asgi"
    assert answer(front, "/v10") == answer(front, "/") == b"wsgi"


def test_services_stop_in_the_reverse_order() -> None:
    events: list[str] = []
    front = Front(bridge(), services=[Recorder("a", events), Recorder("b", events)])
    said = live(front)
    assert [message["type"] for message in said] == [
        "lifespan.startup.complete",
        "lifespan.shutdown.complete",
    ]
    assert events == ["start a", "start b", "stop b", "stop a"]


def test_a_service_that_cannot_start_stops_the_server() -> None:
    said = live(Front(bridge(), services=[Recorder("a", [], fails=True)]))
    assert said == [{"type": "lifespan.startup.failed", "message": "no room"}]
