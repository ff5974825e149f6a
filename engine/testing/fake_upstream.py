"""A model server on loopback that speaks as OpenAI's and Anthropic's do, with faults on request.

It runs on an event loop of its own, so that hundreds of streams can be open at once.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Any

from engine.testing.fake_provider import Request
from engine.testing.upstream_speech import answer_to

STUCK_S = 30.0


@dataclass(frozen=True, slots=True)
class Reply:
    """What to send. ``pieces`` are the parts of a chunked body; otherwise ``body`` is sent whole.

    ``hangs_after`` waits for ``release`` after so many pieces (-1: before the head);
    ``dies_after`` cuts the connection there.
    """

    status: int = 200
    body: bytes = b""
    pieces: Sequence[bytes] | None = None
    headers: dict[str, str] = field(default_factory=dict)
    hangs_after: int | None = None
    dies_after: int | None = None


class FakeUpstream:
    """Keeps the requests. ``script`` replies come first, one each; then ``respond``."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.script: list[Reply] = []
        self.respond: Callable[[Request], Reply] = respond
        self.port = 0
        self.open_streams = 0
        self.left = Event()
        """Set when a client has gone in the middle of an answer."""
        self._loop = asyncio.new_event_loop()
        self._released = asyncio.Event()

    @property
    def url(self) -> str:
        """Its base URL."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def last(self) -> dict[str, Any]:
        """The body of the last request."""
        return self.requests[-1].json()

    def release(self) -> None:
        """Let everything go on that hangs."""
        self._loop.call_soon_threadsafe(self._released.set)

    def run(self, started: Event) -> None:
        """Serve until ``stop``; in a thread of its own."""
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(
            asyncio.start_server(self._client, "127.0.0.1", 0, backlog=1024)
        )
        self.port = server.sockets[0].getsockname()[1]
        started.set()
        self._loop.run_forever()
        server.close()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.close()

    def stop(self) -> None:
        """End serving."""
        self._loop.call_soon_threadsafe(self._loop.stop)

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        early = b""
        # Being cancelled is how it ends when the test is over.
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while request := await _read(reader, early):
                self.requests.append(request)
                reply = self.script.pop(0) if self.script else self.respond(request)
                is_whole, early = await self._watched(reader, self._send(writer, reply))
                if not is_whole:
                    break
        writer.close()

    async def _watched(
        self, reader: asyncio.StreamReader, sending: Coroutine[Any, Any, bool]
    ) -> tuple[bool, bytes]:
        """Send, unless the client goes; whether all was sent, and what came of a next request."""
        self.open_streams += 1
        # A client sends nothing before it has its answer: what can be read is its end.
        task, next_byte = asyncio.ensure_future(sending), asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait({task, next_byte}, return_when=asyncio.FIRST_COMPLETED)
            # To write to somebody who has gone fails.
            has_left = not task.done() or isinstance(task.exception(), ConnectionError)
            is_whole = not has_left and task.result()
            if has_left:
                self.left.set()
        finally:
            self.open_streams -= 1
            for one in (task, next_byte):
                one.cancel()
            await asyncio.wait({task, next_byte})
        return is_whole, b"" if next_byte.cancelled() else next_byte.result()

    async def _send(self, writer: asyncio.StreamWriter, reply: Reply) -> bool:
        if reply.hangs_after == -1:
            await self._wait()
        if reply.dies_after == -1:
            return False
        writer.write(_head(reply))
        if reply.pieces is None:
            writer.write(reply.body if reply.dies_after is None else reply.body[:-1])
            await writer.drain()
            return reply.dies_after is None
        for number, piece in enumerate([*reply.pieces, None]):
            if reply.hangs_after == number:
                await self._wait()
            if reply.dies_after == number:
                return False
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece) if piece else b"0\r\n\r\n")
            await writer.drain()
        return True

    async def _wait(self) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._released.wait(), STUCK_S)


@contextmanager
def serving_models() -> Iterator[FakeUpstream]:
    """Run one on a free port of 127.0.0.1."""
    upstream, started = FakeUpstream(), Event()
    thread = Thread(target=upstream.run, args=(started,), daemon=True)
    thread.start()
    started.wait(STUCK_S)
    try:
        yield upstream
    finally:
        upstream.stop()
        thread.join(STUCK_S)


def json_reply(value: object, status: int = 200) -> Reply:
    """A JSON answer of a known length."""
    body = json.dumps(value).encode()
    return Reply(status, body, headers={"Content-Type": "application/json"})


def stream_reply(pieces: Sequence[bytes]) -> Reply:
    """A stream of events."""
    return Reply(pieces=pieces, headers={"Content-Type": "text/event-stream; charset=utf-8"})


def respond(request: Request) -> Reply:
    """What a faithful server answers."""
    answer = answer_to(request)
    if isinstance(answer, list):
        return stream_reply(answer)
    status, value = answer
    return json_reply(value, status)


async def _read(reader: asyncio.StreamReader, early: bytes) -> Request | None:
    """The next request; None when there is no other."""
    try:
        head = early + await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").strip().split("\r\n")
    method, path, _version = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Request(method, path, headers, body)


def _head(reply: Reply) -> bytes:
    length = str(len(reply.body))
    framing = (
        {"Content-Length": length} if reply.pieces is None else {"Transfer-Encoding": "chunked"}
    )
    lines = [f"HTTP/1.1 {reply.status} X"]
    lines += [f"{name}: {value}" for name, value in {**reply.headers, **framing}.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")
