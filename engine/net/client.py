"""The one client for outbound HTTP: policy, pinned addresses, time limits, retries, size limit.

No redirects, no cookies, no proxies from the environment, no compressed answers.
"""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event

import certifi
import httpcore

from engine.errors import EngineError
from engine.net import strict_json
from engine.net.errors import HttpFailed
from engine.net.pinned import PinnedBackend, Resolve, deadline, resolve
from engine.net.policy import OPERATOR, Target, UrlPolicy, check_url
from engine.net.retry import MAX_RETRIES, delay_ms, outcome
from engine.net.strict_json import Json

MIB = 1 << 20

Wait = Callable[[float], None]
"""Waits some seconds between attempts; raises (``Cancelled``) when there is to be no other."""


def pause(seconds: float) -> None:
    """Wait that nothing interrupts."""
    Event().wait(seconds)


@dataclass(frozen=True, slots=True)
class Limits:
    """Times in seconds; ``total_s`` is for one attempt, from connecting to the last byte."""

    connect_s: float = 10.0
    total_s: float = 60.0
    retries: int = 2
    backoff_ms: int = 500
    max_bytes: int = 32 * MIB

    def __post_init__(self) -> None:
        if not 0 <= self.retries <= MAX_RETRIES:
            raise EngineError("Retries must be 0 to 5.", code="retries_out_of_range")


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    retry_after: str | None
    body: bytes


class HttpClient:
    """Thread-safe; keeps connections open between requests."""

    def __init__(
        self,
        policy: UrlPolicy = OPERATOR,
        *,
        limits: Limits | None = None,
        resolve: Resolve = resolve,
        wait: Wait = pause,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._policy = policy
        self._limits = limits or Limits()
        self._wait = wait
        self._pool = httpcore.ConnectionPool(
            ssl_context=tls or _trusted(),
            network_backend=PinnedBackend(policy, resolve),
            keepalive_expiry=30.0,
        )

    def post_json(
        self,
        url: str,
        body: Mapping[str, object],
        *,
        headers: Mapping[str, str] | None = None,
        limits: Limits | None = None,
    ) -> Json:
        """Send JSON and parse the JSON answer strictly. Raises ``UrlBlocked`` or ``HttpFailed``."""
        content = json.dumps(body, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
        sent = {"Content-Type": "application/json", **(headers or {})}
        return strict_json.parse(self.request("POST", url, content, sent, limits))

    def get_json(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        limits: Limits | None = None,
    ) -> Json:
        """Fetch JSON and parse it strictly. Raises ``UrlBlocked`` or ``HttpFailed``."""
        return strict_json.parse(self.request("GET", url, b"", headers or {}, limits))

    def request(
        self,
        method: str,
        url: str,
        content: bytes,
        headers: Mapping[str, str],
        limits: Limits | None = None,
    ) -> bytes:
        """The body of a successful answer. Raises ``UrlBlocked`` or ``HttpFailed``."""
        limits = limits or self._limits
        target = check_url(url, self._policy)
        request = _request(method, target, content, headers)
        attempt = 0
        while True:
            retry_after: str | None = None
            try:
                answer = self._attempt(request, limits)
                found = outcome(answer.status)
                if not found.error:
                    return answer.body
                retry_after, is_retried = answer.retry_after, found.is_retried
                failure = _refused(answer.status, found.error)
            except HttpFailed as error:
                failure, is_retried = error, error.code in ("connect_failed", "timeout")
            if not is_retried or attempt >= limits.retries:
                raise failure
            pause_ms = delay_ms(attempt, backoff_ms=limits.backoff_ms, retry_after=retry_after)
            self._wait(pause_ms / 1000)
            attempt += 1

    def close(self) -> None:
        """Close idle connections."""
        self._pool.close()

    def _attempt(self, request: httpcore.Request, limits: Limits) -> _Answer:
        token = deadline.set(time.monotonic() + limits.total_s)
        request.extensions["timeout"] = {
            "connect": limits.connect_s,
            "read": limits.total_s,
            "write": limits.total_s,
            "pool": limits.total_s,
        }
        try:
            with _translated():
                response = self._pool.handle_request(request)
                try:
                    return _read(response, limits.max_bytes)
                finally:
                    response.close()
        finally:
            deadline.reset(token)


def _request(
    method: str, target: Target, content: bytes, headers: Mapping[str, str]
) -> httpcore.Request:
    is_v6 = target.address is not None and target.address.version == 6
    host = f"[{target.host}]" if is_v6 else target.host
    sent = {
        "Host": host if target.has_default_port else f"{host}:{target.port}",
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "User-Agent": "memory-studio",
        **headers,
    }
    if content:
        sent["Content-Length"] = str(len(content))
    url = httpcore.URL(
        scheme=target.scheme.encode(),
        host=target.host.encode(),
        port=target.port,
        target=target.path.encode(),
    )
    return httpcore.Request(method, url, headers=list(sent.items()), content=content)


def _read(response: httpcore.Response, max_bytes: int) -> _Answer:
    fields = {name.lower(): value for name, value in response.headers}
    if fields.get(b"content-encoding", b"identity").lower() != b"identity":
        raise HttpFailed("The answer is compressed, unasked.", code="invalid_response")
    body = bytearray()
    for chunk in response.iter_stream():
        body += chunk
        if len(body) > max_bytes:
            raise HttpFailed("The answer is too large.", code="response_too_large")
    retry_after = fields.get(b"retry-after")
    shown = None if retry_after is None else retry_after.decode("latin-1")
    return _Answer(response.status, shown, bytes(body))


def _refused(status: int, code: str) -> HttpFailed:
    return HttpFailed(f"The server answered with status {status}.", code=code, status=status)


@contextmanager
def _translated() -> Iterator[None]:
    """Errors of the network library as ``HttpFailed``."""
    try:
        yield
    except httpcore.TimeoutException as error:
        raise HttpFailed("The server did not answer in time.", code="timeout") from error
    except httpcore.ConnectError as error:
        if isinstance(error.__cause__ or error.__context__, ssl.SSLError):
            raise HttpFailed("The secure connection failed.", code="tls_failed") from error
        raise HttpFailed("The server cannot be reached.", code="connect_failed") from error
    except (httpcore.NetworkError, httpcore.ProtocolError) as error:
        raise HttpFailed("The connection broke.", code="connect_failed") from error


def _trusted() -> ssl.SSLContext:
    """The system's certificate authorities and those of certifi; verification is always on."""
    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return context
