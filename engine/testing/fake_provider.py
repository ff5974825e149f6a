"""A small HTTP server on loopback that answers what a test tells it to."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

STUCK_S = 30.0
"""How long a request that is to hang may hang when the test forgets to release it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What to send. One that hangs never sends its last byte."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    hangs: bool = False
    is_silent: bool = False
    """Take the request and never say a word."""
    drops: bool = False
    """Close the connection without a word."""
    breaks: bool = False
    """Close the connection one byte before the end."""


@dataclass(frozen=True, slots=True)
class Request:
    """What arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    def json(self) -> dict[str, object]:
        """The body as an object."""
        value: dict[str, object] = json.loads(self.body)
        return value


class Provider:
    """Keeps the requests. ``script`` answers come first, one each; then ``respond``."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.script: list[Answer] = []
        self.respond: Callable[[Request], Answer] = embeddings
        self.release = Event()
        self.port = 0

    def answer(self, request: Request) -> Answer:
        """The answer to one request."""
        self.requests.append(request)
        return self.script.pop(0) if self.script else self.respond(request)


def embeddings(request: Request) -> Answer:
    """A faithful ``/embeddings`` answer: three values for each text, in reverse order."""
    texts = request.json()["input"]
    if not isinstance(texts, list):
        return Answer(400)
    data = [
        {"object": "embedding", "index": index, "embedding": [3.0, float(len(text)), 0.0]}
        for index, text in enumerate(texts)
    ]
    return json_answer({"object": "list", "data": data[::-1], "model": "m", "usage": {}})


def json_answer(value: object, status: int = 200) -> Answer:
    """A JSON answer."""
    body = json.dumps(value).encode()
    return Answer(status, body, {"Content-Type": "application/json"})


@contextmanager
def serving(tls: ssl.SSLContext | None = None) -> Iterator[Provider]:
    """Run a provider on a free port of 127.0.0.1."""
    provider = Provider()
    server = _Server(("127.0.0.1", 0), _handler(provider))
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    provider.port = server.server_address[1]
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield provider
    finally:
        provider.release.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = False

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is part of the tests."""


def _handler(provider: Provider) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = STUCK_S

        def do_POST(self) -> None:
            size = int(self.headers.get("Content-Length", 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            body = self.rfile.read(size)
            self._send(provider.answer(Request(self.command, self.path, headers, body)))

        do_GET = do_PUT = do_PATCH = do_DELETE = do_POST

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

        def _send(self, answer: Answer) -> None:
            # One request for each connection, so that every request resolves its name anew.
            self.close_connection = True
            if answer.is_silent:
                provider.release.wait(STUCK_S)
            if answer.drops or answer.is_silent:
                return
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header(
                "Content-Length", str(len(answer.body) + (answer.hangs or answer.breaks))
            )
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(answer.body)
            self.wfile.flush()
            if answer.hangs:
                provider.release.wait(STUCK_S)

    return Handler
