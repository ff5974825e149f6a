"""A Qdrant server on loopback for tests: its HTTP interface over its own engine, and its faults.

What a client meets is the server's: envelopes, statuses, plain-text refusals of a wrong key. Only
what the product uses is there; anything else is a 404.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

from engine.testing.qdrant_conditions import Json, Refused
from engine.testing.qdrant_shards import Shards

VERSION: Final = "1.20.0"
STUCK_S: Final = 30.0
"""How long an answer that is to be slow may take when the test forgets to release it."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens instead of an answer.

    ``status`` answers an error, ``is_slow`` waits for the test, ``breaks`` closes the connection
    inside the answer, ``drops`` before it.
    """

    status: int = 0
    retry_after: str = ""
    is_slow: bool = False
    breaks: bool = False
    drops: bool = False


NO_FAULT: Final = Fault()
OPEN_PATHS: Final = ("/", "/healthz", "/livez", "/readyz")
"""What needs no key."""


@dataclass(frozen=True, slots=True)
class Call:
    """A request that arrived."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: Json = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


Choose = Callable[[Call], Fault | None]


class FakeQdrant:
    """The server. ``calls`` are in order; ``fault`` chooses what goes wrong with a call."""

    def __init__(self, folder: Path) -> None:
        self.shards = Shards(folder)
        self.calls: list[Call] = []
        self.api_key = ""
        self.is_ready = True
        self.fault: Choose = lambda call: None
        self.released = Event()
        self.port = 0
        self._server: _Server | None = None
        self._thread: Thread | None = None

    def start(self) -> None:
        """Listen, at the port it had before."""
        server = _Server(self.port, self)
        self.port = server.server_address[1]
        self._server = server
        self._thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def stop(self) -> None:
        """Refuse connections, keep the data."""
        if self._server is None or self._thread is None:
            return
        self.released.set()
        self._server.shutdown()
        self._server.hang_up()
        self._server.server_close()
        self._thread.join()
        self._server = self._thread = None

    def fail(self, fault: Fault | None, *, only: str = "") -> None:
        """Let every call fail, or those whose path ends in ``only``; None heals it."""
        self.released.set()
        self.released = Event()
        self.fault = lambda call: fault if call.path.endswith(only) else None

    def asked(self, ending: str) -> list[Call]:
        """The calls so far whose path ends so."""
        return [call for call in self.calls if call.path.endswith(ending)]

    def close(self) -> None:
        """Stop for good."""
        self.stop()
        self.shards.release()
        self.shards.close()


@contextmanager
def serving() -> Iterator[FakeQdrant]:
    """A server on a free port of 127.0.0.1."""
    with tempfile.TemporaryDirectory(prefix="fake-qdrant-", dir=_memory()) as folder:
        server = FakeQdrant(Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.close()


def _memory() -> str | None:
    """A folder in memory where there is one: the engine writes everything through to the disk."""
    shared = Path("/dev", "shm")
    return str(shared) if os.access(shared, os.W_OK) else None


Text = tuple[int, str]


def answer(server: FakeQdrant, call: Call) -> Text | Any:
    """Plain text with its status, or the result for an envelope. Raises ``Refused``."""
    parts = [unquote(part) for part in call.path.strip("/").split("/")]
    match (call.method, *parts):
        case ("GET", ""):
            return (200, json.dumps({"title": "qdrant", "version": VERSION, "commit": ""}))
        case ("GET", "healthz" | "livez" as name):
            return (200, f"{name} check passed")
        case ("GET", "readyz"):
            ready = server.is_ready
            return (200, "all shards are ready") if ready else (503, "some shards are not ready")
        case ("GET", "collections"):
            return {"collections": [{"name": name} for name in sorted(server.shards.collections)]}
        case ("GET", "aliases"):
            return {"aliases": _aliases(server.shards)}
        case ("POST", "collections", "aliases"):
            server.shards.change_aliases(call.body["actions"])
            return True
        case (_, "collections", name, *rest):
            return _collection(server.shards, call, name, rest)
    raise Refused(404, "Not found")


def _collection(shards: Shards, call: Call, name: str, rest: list[str]) -> Any:
    match (call.method, *rest):
        case ("GET", "exists"):
            return {"exists": shards.aliases.get(name, name) in shards.collections}
        case ("PUT",):
            shards.create(name, call.body)
            return True
        case ("DELETE",):
            return shards.drop(name)
        case ("GET",):
            return shards.of(name).info()
        case ("GET", "aliases"):
            found = shards.of(name).name
            return {"aliases": [a for a in _aliases(shards) if a["collection_name"] == found]}
        case (_, "index" | "points", *_):
            return _points(shards, call, name, rest)
    raise Refused(404, "Not found")


def _points(shards: Shards, call: Call, name: str, rest: list[str]) -> Any:
    collection, body = shards.of(name), call.body
    wait = call.query.get("wait") == "true"
    match (call.method, *rest):
        case ("PUT", "index"):
            status = shards.update(lambda: collection.index(body), wait=wait)
        case ("PUT", "points"):
            status = shards.update(lambda: collection.upsert(body), wait=wait)
        case ("POST", "points", "delete"):
            status = shards.update(lambda: collection.delete(body), wait=wait)
        case ("POST", "points", "query"):
            return collection.query(body)
        case ("POST", "points", "scroll"):
            return collection.scroll(body)
        case ("POST", "points", "count"):
            return collection.count(body)
        case ("POST", "points"):
            return collection.retrieve(body)
        case _:
            raise Refused(404, "Not found")
    return {"operation_id": len(call.path), "status": status}


def _aliases(shards: Shards) -> list[dict[str, str]]:
    return [
        {"alias_name": alias, "collection_name": name}
        for alias, name in sorted(shards.aliases.items())
    ]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, port: int, qdrant: FakeQdrant) -> None:
        self.qdrant = qdrant
        self._open: set[socket.socket] = set()
        super().__init__(("127.0.0.1", port), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Remember the connection: a server that is down answers on none."""
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """The end of a connection."""
        self._open.discard(request)
        super().shutdown_request(request)

    def hang_up(self) -> None:
        """Close every connection."""
        for one in list(self._open):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = STUCK_S
    # Headers and body in one go, at once: a real server answers without waiting for its network.
    wbufsize = -1
    disable_nagle_algorithm = True
    server: _Server

    def do_GET(self) -> None:
        qdrant, call = self.server.qdrant, self._call()
        qdrant.calls.append(call)
        fault = qdrant.fault(call) or NO_FAULT
        if fault.is_slow:
            qdrant.released.wait(STUCK_S)
        if fault.drops:
            self.close_connection = True
            return
        status, body, kind = self._outcome(call, fault)
        self._send(status, body, kind, fault)

    do_POST = do_PUT = do_DELETE = do_GET

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""

    def _call(self) -> Call:
        parts = urlsplit(self.path)
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        headers = {name.lower(): value for name, value in self.headers.items()}
        return Call(self.command, parts.path, query, json.loads(raw or b"{}"), headers)

    def _outcome(self, call: Call, fault: Fault) -> tuple[int, str, str]:
        begun = time.monotonic()
        refusal = self._key_refused(call)
        if refusal:
            return 401, refusal, "text/plain; charset=utf-8"
        document: dict[str, Any] = {}
        try:
            if fault.status:
                raise Refused(fault.status, "Service internal error: told to fail")
            result = answer(self.server.qdrant, call)
        except Refused as error:
            status, document["status"] = error.status, {"error": str(error)}
        else:
            if isinstance(result, tuple):
                kind = "application/json" if call.path == "/" else "text/plain"
                return result[0], result[1], kind
            status, document = 200, {"result": result, "status": "ok"}
        document["time"] = time.monotonic() - begun
        return status, json.dumps(document), "application/json"

    def _key_refused(self, call: Call) -> str:
        wanted, given = self.server.qdrant.api_key, call.headers.get("api-key", "")
        if not wanted or call.path in OPEN_PATHS or given == wanted:
            return ""
        return "Invalid API key or JWT" if given else "Must provide an API key"

    def _send(self, status: int, body: str, kind: str, fault: Fault) -> None:
        raw = body.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(raw)))
        if fault.retry_after:
            self.send_header("Retry-After", fault.retry_after)
        self.end_headers()
        if fault.breaks:
            raw, self.close_connection = raw[: len(raw) // 2], True
        self.wfile.write(raw)
        self.wfile.flush()
