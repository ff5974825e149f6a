"""A thread bridge: runs a WSGI application behind an ASGI server.

Django is several times faster over WSGI than over its own ASGI handler. One request costs one hop
to a thread and back; a response whose length is not known is streamed chunk by chunk, at the pace
at which the client reads it.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import tempfile
import uuid
from collections.abc import Awaitable, Callable, Iterable, Iterator, MutableMapping
from concurrent.futures import CancelledError, ThreadPoolExecutor
from types import TracebackType
from typing import IO, Any, Final, Protocol

logger = logging.getLogger("memstudio.bridge")

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApplication = Callable[[Scope, Receive, Send], Awaitable[None]]
Environ = dict[str, Any]
Headers = list[tuple[bytes, bytes]]
ExcInfo = tuple[type[BaseException], BaseException, TracebackType] | tuple[None, None, None] | None

SPOOL_BYTES: Final = 2**20
"""A request body above this is kept in a file."""
IN_MEMORY: Final = ("/vaults/", "/api/vaults")
"""Where bodies may be the text of a sealed vault, which no file may hold."""
FILE_CHUNK_BYTES: Final = 2**18
"""How much of a file is sent at a time."""


class WsgiApplication(Protocol):
    """Any WSGI application."""

    def __call__(self, environ: Environ, start_response: Any, /) -> Iterable[bytes]:
        """Answer one request."""
        ...


class TooLarge(Exception):
    """The request body is over the limit."""


class Disconnected(Exception):
    """The client has gone."""


class Bridge:
    """The ASGI application that runs a WSGI application in ``threads`` threads."""

    def __init__(self, application: WsgiApplication, *, threads: int, max_body_bytes: int) -> None:
        self._application = application
        self._max_body_bytes = max_body_bytes
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="web")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""
        try:
            body, size = await _read_body(scope, receive, self._max_body_bytes)
        except TooLarge:
            await _discard(receive, self._max_body_bytes)
            await _refuse(send, self._max_body_bytes)
            return
        except Disconnected:
            return
        exchange = _Exchange(scope["method"], receive, send)
        with body:
            await self._answer(_environ(scope, body, size), exchange)

    async def _answer(self, environ: Environ, exchange: _Exchange) -> None:
        work = exchange.loop.run_in_executor(self._pool, exchange.run, self._application, environ)
        try:
            rest = await work
        except Exception:
            logger.exception("%s %s failed", environ["REQUEST_METHOD"], environ["PATH_INFO"])
            rest = exchange.failed()
        finally:
            exchange.end()
        for message in rest:
            await exchange.send(message)

    def close(self) -> None:
        """Let go of the threads. Requests that run are left to end with the process."""
        self._pool.shutdown(wait=False, cancel_futures=True)


class _Exchange:
    """One request and its response: what the thread has been told and what it has sent."""

    def __init__(self, method: str, receive: Receive, send: Send) -> None:
        self.send = send
        self.loop = asyncio.get_running_loop()
        self._receive = receive
        self._has_body = method != "HEAD"
        self._start: Message | None = None
        self._is_started = False
        self._watch: asyncio.Task[None] | None = None
        self._is_gone = False

    def failed(self) -> list[Message]:
        """What is still to be sent when the application broke off."""
        if self._is_started:
            return []
        text = b"Internal server error"
        headers = [(b"content-type", b"text/plain"), (b"content-length", b"%d" % len(text))]
        return [{"type": "http.response.start", "status": 500, "headers": headers}, _body(text)]

    def end(self) -> None:
        """The thread is done: stop watching the client."""
        if self._watch is not None:
            self._watch.cancel()

    def run(self, application: WsgiApplication, environ: Environ) -> list[Message]:
        """In a thread: call the application. Returns the messages that are still to be sent."""
        result = application(environ, self._start_response)
        try:
            return self._iterate(result)
        except Disconnected:
            return []
        finally:
            close = getattr(result, "close", None)
            if close is not None:
                close()

    def _iterate(self, result: Iterable[bytes]) -> list[Message]:
        chunks: Iterator[bytes] = iter(result)
        first = next(chunks, b"")
        start = self._checked_start()
        if not self._has_body:
            return [start, _body(b"")]
        if len(first) == _content_length(start["headers"]):
            return [start, _body(first)]
        self.loop.call_soon_threadsafe(self._start_watching)
        self._send_now(start)
        self._send_now(_body(first, more=True))
        for chunk in chunks:
            self._send_now(_body(chunk, more=True))
        return [_body(b"")]

    def _send_now(self, message: Message) -> None:
        # Waiting for the send is what slows the application down to the pace of the client.
        if self._is_gone:
            raise Disconnected
        self._is_started = True
        try:
            asyncio.run_coroutine_threadsafe(self._sent(message), self.loop).result()
        except (OSError, RuntimeError, CancelledError):
            raise Disconnected from None

    async def _sent(self, message: Message) -> None:
        await self.send(message)

    def _start_watching(self) -> None:
        # Only a streamed response lives long enough for its client to leave.
        self._watch = self.loop.create_task(self._notice_leaving())

    async def _notice_leaving(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._is_gone = True

    def _start_response(
        self, status: str, headers: list[tuple[str, str]], exc_info: ExcInfo = None
    ) -> Callable[[bytes], object]:
        if exc_info and exc_info[1] is not None and self._is_started:
            raise exc_info[1]
        self._start = {
            "type": "http.response.start",
            "status": int(status.split(" ", 1)[0]),
            "headers": [
                (name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers
            ],
        }
        return _no_write

    def _checked_start(self) -> Message:
        if self._start is None:
            raise RuntimeError("the application never called start_response")
        return self._start


class FileChunks:
    """``wsgi.file_wrapper``: a file in large chunks, whatever size the application asks for."""

    def __init__(self, file: IO[bytes], block_size: int = FILE_CHUNK_BYTES) -> None:
        self._file = file
        self._block_size = max(block_size, FILE_CHUNK_BYTES)

    def __iter__(self) -> Iterator[bytes]:
        """The chunks, until the file ends."""
        return iter(lambda: self._file.read(self._block_size), b"")

    def close(self) -> None:
        """Close the file."""
        self._file.close()


async def _read_body(scope: Scope, receive: Receive, limit: int) -> tuple[IO[bytes], int]:
    announced = _content_length(scope["headers"])
    if announced is not None and announced > limit:
        raise TooLarge
    is_kept = scope["path"].startswith(IN_MEMORY)
    most = limit + 1 if is_kept else SPOOL_BYTES
    body: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=most)  # noqa: SIM115
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            body.close()
            raise Disconnected
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > limit:
            body.close()
            raise TooLarge
        body.write(chunk)
        more = message.get("more_body", False)
    body.seek(0)
    return body, size


async def _discard(receive: Receive, limit: int) -> None:
    # Most clients read the answer only after they have sent everything.
    size, more = 0, True
    while more and size <= limit:
        message = await receive()
        size += len(message.get("body", b""))
        more = message.get("more_body", False)


def _environ(scope: Scope, body: IO[bytes], size: int) -> Environ:
    host, port = scope.get("server") or ("localhost", 80)
    environ: Environ = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": _wsgi_text(scope.get("root_path", "")),
        "PATH_INFO": _wsgi_text(scope["path"]),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "SERVER_NAME": host,
        "SERVER_PORT": str(port),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "REMOTE_ADDR": (scope.get("client") or ("",))[0],
        "CONTENT_LENGTH": str(size),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope.get("scheme", "http"),
        "wsgi.input": body,
        "wsgi.input_terminated": True,
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
        "wsgi.file_wrapper": FileChunks,
    }
    for raw_name, raw_value in scope["headers"]:
        _add_header(environ, raw_name.decode("latin-1"), raw_value.decode("latin-1"))
    return environ


def _add_header(environ: Environ, name: str, value: str) -> None:
    # With an underscore a client could pass for a header that only a proxy may set.
    if name == "content-length" or "_" in name:
        return
    if name == "content-type":
        environ["CONTENT_TYPE"] = value
        return
    key = "HTTP_" + name.upper().replace("-", "_")
    if key in environ:
        separator = "; " if name == "cookie" else ","
        value = f"{environ[key]}{separator}{value}"
    environ[key] = value


def _wsgi_text(text: str) -> str:
    # WSGI wants the bytes of the path as latin-1; the server has decoded them as UTF-8.
    return text.encode("utf-8", "surrogateescape").decode("latin-1")


def _content_length(headers: Iterable[tuple[bytes, bytes]]) -> int | None:
    for name, value in headers:
        if name == b"content-length":
            return int(value) if value.isdigit() else None
    return None


def _body(chunk: bytes, *, more: bool = False) -> Message:
    return {"type": "http.response.body", "body": chunk, "more_body": more}


def _no_write(_data: bytes) -> object:
    raise RuntimeError("the write callable of WSGI is not supported")


async def _refuse(send: Send, limit: int) -> None:
    text = (
        f'{{"error": {{"code": "too_large", "message": "The body is larger than {limit} bytes.", '
        f'"requestId": "{uuid.uuid4()}"}}}}'
    ).encode()
    headers: Headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(text)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send(_body(text))
