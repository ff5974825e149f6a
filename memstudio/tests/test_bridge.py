"""The thread bridge: WSGI semantics, limits, streams and clients that leave."""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memstudio.bridge import Bridge, Environ, Message, Scope, WsgiApplication

StartResponse = Callable[..., Any]


def scope(method: str = "GET", path: str = "/", headers: Iterable[tuple[str, str]] = ()) -> Scope:
    return {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": b"q=1",
        "http_version": "1.1",
        "scheme": "http",
        "server": ("127.0.0.1", 8765),
        "client": ("127.0.0.1", 50000),
        "headers": [(name.encode(), value.encode()) for name, value in headers],
    }


class Client:
    """Plays the server's part: gives body parts, collects what is sent."""

    def __init__(self, *parts: bytes, leaves_after: int | None = None) -> None:
        self.parts = list(parts) or [b""]
        self.sent: list[Message] = []
        self.leaves_after = leaves_after
        self.left = asyncio.Event()

    async def receive(self) -> Message:
        if self.parts:
            part = self.parts.pop(0)
            return {"type": "http.request", "body": part, "more_body": bool(self.parts)}
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        self.sent.append(message)
        if self.leaves_after is not None and len(self.sent) > self.leaves_after:
            self.left.set()

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])

    @property
    def body(self) -> bytes:
        return b"".join(message["body"] for message in self.sent[1:])


def ask(
    application: WsgiApplication, request: Scope, *parts: bytes, leaves_after: int | None = None
) -> Client:
    """Send one request through a bridge that takes bodies of 2,000 kB."""

    async def run() -> Client:
        client = Client(*parts, leaves_after=leaves_after)
        bridge = Bridge(application, threads=2, max_body_bytes=2_000_000)
        try:
            await asyncio.wait_for(bridge(request, client.receive, client.send), 10)
        finally:
            bridge.close()
        return client

    return asyncio.run(run())


class Echo:
    """Answers with the body of the request and keeps its environ."""

    environ: Environ

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        self.environ = environ
        body = environ["wsgi.input"].read()
        start_response("200 OK", [("Content-Length", str(len(body))), ("X-Kept", "yes")])
        return [body]


def test_a_request_becomes_an_environ() -> None:
    echo = Echo()
    headers = [("x-good", "a"), ("x-good", "b"), ("cookie", "c=1"), ("cookie", "d=2")]
    client = ask(echo, scope("POST", "/咖啡", [*headers, ("x_good", "evil")]), b"he", b"llo")
    assert (client.status, client.body) == (200, b"hello")
    assert (b"x-kept", b"yes") in client.sent[0]["headers"]
    assert echo.environ["PATH_INFO"].encode("latin-1").decode() == "/咖啡"
    assert echo.environ["HTTP_X_GOOD"] == "a,b"
    assert echo.environ["HTTP_COOKIE"] == "c=1; d=2"
    assert echo.environ["CONTENT_LENGTH"] == "5"


def test_a_large_body_arrives_whole() -> None:
    part = b"x" * 600_000
    assert len(ask(Echo(), scope("POST"), part, part, part).body) == 1_800_000


def test_a_body_for_a_vault_is_in_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    part = b"x" * 600_000
    for path in ("/vaults/0/ingest/", "/api/vaults/0/ingest"):
        assert len(ask(Echo(), scope("POST", path), part, part, part).body) == 1_800_000


def test_a_body_over_the_limit_is_refused_before_the_application_sees_it() -> None:
    echo = Echo()
    announced = ask(echo, scope("POST", headers=[("content-length", "2000001")]))
    found = ask(echo, scope("POST"), b"x" * 1_500_000, b"x" * 1_500_000, b"rest")
    assert announced.status == found.status == 413
    assert b'"code": "too_large"' in found.body
    assert not hasattr(echo, "environ")


def test_a_head_request_gets_headers_only() -> None:
    client = ask(Echo(), scope("HEAD"), b"hello")
    assert client.body == b""
    assert (b"content-length", b"5") in client.sent[0]["headers"]


class Stream:
    """A response of unknown length: ``count`` chunks, or one after another without end."""

    def __init__(self, count: int | None = None) -> None:
        self.count = count
        self.is_closed = False
        self.thread = ""

    def __call__(self, _environ: Environ, start_response: StartResponse) -> Stream:
        start_response("200 OK", [])
        return self

    def __iter__(self) -> Iterator[bytes]:
        made = 0
        while self.count is None or made < self.count:
            made += 1
            yield b"%d;" % made

    def close(self) -> None:
        self.is_closed = True
        self.thread = threading.current_thread().name


def test_a_stream_is_sent_chunk_by_chunk_and_closed_in_its_thread() -> None:
    stream = Stream(3)
    client = ask(stream, scope())
    assert [message["body"] for message in client.sent[1:]] == [b"1;", b"2;", b"3;", b""]
    assert [message["more_body"] for message in client.sent[1:]] == [True, True, True, False]
    assert stream.is_closed
    assert stream.thread.startswith("web")


def test_a_client_that_leaves_ends_the_stream() -> None:
    stream = Stream()
    client = ask(stream, scope(), leaves_after=5)
    assert stream.is_closed
    assert client.sent[-1]["more_body"]


def test_an_application_that_fails_gives_a_500(caplog: pytest.LogCaptureFixture) -> None:
    def broken(_environ: Environ, _start_response: StartResponse) -> Iterable[bytes]:
        raise ValueError("inside")

    client = ask(broken, scope())
    assert client.status == 500
    assert b"inside" not in client.body
    assert "GET / failed" in caplog.text
