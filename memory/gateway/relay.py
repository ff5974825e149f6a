"""One request to an upstream and its answer on the way back, byte by byte as it came."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from engine.chat.bodies import parse
from engine.chat.reading import response_text
from engine.chat.sse import ReplyReader
from engine.net.errors import HttpFailed, UrlBlocked
from engine.net.streaming import Incoming as Answer
from engine.net.streaming import StreamingClient, StreamLimits
from memory.asgi import Send
from memory.gateway.headers import Headers, client_headers, upstream_headers
from memory.gateway.refusals import Dialect, Refusal, error_body, error_event
from memory.services.upstreams import Upstream

MAX_READ: Final = 4 * 2**20
"""A larger reply is passed on and not read."""
UNREACHED: Final = frozenset({"connect_failed", "tls_failed", "proxy_refused"})


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request to one upstream; ``path`` begins with a slash."""

    upstream: Upstream
    path: str
    query: str
    headers: Mapping[str, str]
    content: bytes


async def ask(client: StreamingClient, outgoing: Outgoing, limits: StreamLimits) -> Answer:
    """The upstream's answer, its body still to be read. Raises ``HttpFailed`` and ``Refusal``."""
    url = f"{outgoing.upstream.base_url}{outgoing.path}"
    url = f"{url}?{outgoing.query}" if outgoing.query else url
    sent = upstream_headers(outgoing.headers, outgoing.upstream.headers)
    try:
        return await client.send("POST", url, outgoing.content, sent, limits)
    except UrlBlocked as error:
        raise Refusal(502, "url_blocked", str(error)) from None


def refusal_for(error: HttpFailed, provider: str) -> Refusal:
    """What a client is told of an upstream that gave no answer."""
    status = 504 if error.code == "timeout" else 502
    return Refusal(status, f"upstream_{error.code}", f"The provider “{provider}”: {error}")


class Reply:
    """Passes an answer on, and reads its text on the side where that is wanted."""

    def __init__(self, answer: Answer, provider: str, *, dialect: Dialect, is_read: bool) -> None:
        self.answer = answer
        self._provider = provider
        self._dialect = dialect
        self._is_stream = answer.header(b"content-type").startswith(b"text/event-stream")
        self._reader = ReplyReader() if is_read and self._is_stream else None
        self._body = bytearray() if is_read and not self._is_stream else None

    @property
    def text(self) -> str:
        """What the model said, as far as it was read."""
        if self._reader is not None:
            return self._reader.text
        return response_text(parse(bytes(self._body))) if self._body else ""

    async def pass_on(self, send: Send, receipt: Headers) -> None:
        """Send the whole answer. Raises ``HttpFailed`` when the upstream breaks off.

        A stream then ends with an error that the client's library raises; anything else is cut,
        so that nobody takes it for whole.
        """
        headers = client_headers(self.answer.headers, receipt)
        if self._is_stream:
            headers.append((b"x-accel-buffering", b"no"))
        try:
            await send(
                {"type": "http.response.start", "status": self.answer.status, "headers": headers}
            )
            async for chunk in self.answer.chunks():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
                self._look_at(chunk)
        except HttpFailed as error:
            if self._is_stream:
                event = error_event(refusal_for(error, self._provider), self._dialect)
                await send({"type": "http.response.body", "body": event, "more_body": False})
            raise
        finally:
            await self.answer.close()
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _look_at(self, chunk: bytes) -> None:
        if self._reader is not None:
            self._reader.feed(chunk)
        elif self._body is not None:
            self._body += chunk
            if len(self._body) > MAX_READ:
                self._body = None


async def send_json(
    send: Send, status: int, value: object, headers: Sequence[tuple[bytes, bytes]] = ()
) -> None:
    """Send JSON as the whole answer."""
    body = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
    start = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        *headers,
    ]
    await send({"type": "http.response.start", "status": status, "headers": start})
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def refuse(
    send: Send, refusal: Refusal, dialect: Dialect, headers: Sequence[tuple[bytes, bytes]] = ()
) -> None:
    """Send an error of ours."""
    await send_json(
        send, refusal.status, error_body(refusal, dialect), [*refusal.headers, *headers]
    )
