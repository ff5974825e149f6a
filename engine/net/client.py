"""The one client for outbound HTTP: policy, pinned addresses, time limits, retries, size limit.

No cookies, no compressed answers, and redirects for downloads only. Proxies are given, never
looked up.
"""

from __future__ import annotations

import dataclasses
import json
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from threading import Event
from urllib.parse import urljoin

import httpcore

from engine import spans
from engine.errors import EngineError
from engine.net import strict_json
from engine.net.errors import RETRIED, HttpFailed
from engine.net.failures import NETWORK_ERRORS, failure
from engine.net.pinned import Resolve, deadline, resolve
from engine.net.policy import OPERATOR, Target, UrlPolicy, check_url
from engine.net.pools import Outgoing, Pools
from engine.net.proxies import DIRECT, Proxies
from engine.net.retry import MAX_RETRIES, asked_wait, delay_ms, outcome, refused_key
from engine.net.strict_json import Json
from engine.spans import Span, Value

MIB = 1 << 20
MAX_REFUSAL = 64 * 1024
"""How much of a refusal is read."""
TELLING = RETRIED | {400}

KEPT_ACROSS_ORIGINS = frozenset({"range", "if-range", "accept"})

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
class Streamed:
    """An answer whose body is still to be read. Names of ``headers`` are in lower case."""

    status: int
    headers: Mapping[str, str]
    chunks: Iterator[bytes]


@dataclass(frozen=True, slots=True)
class Exchanged:
    """An answer as it came, whatever its status. Names of ``headers`` are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class HttpClient:
    """Thread-safe; keeps connections open between requests."""

    def __init__(
        self,
        policy: UrlPolicy = OPERATOR,
        *,
        limits: Limits | None = None,
        proxies: Proxies = DIRECT,
        resolve: Resolve = resolve,
        wait: Wait = pause,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._policy = policy
        self._limits = limits or Limits()
        self._wait = wait
        self._pools = Pools(proxies, resolve=resolve, tls=tls)

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
        *,
        query: str = "",
    ) -> bytes:
        """The body of a successful answer. Raises ``UrlBlocked`` or ``HttpFailed``.

        ``query`` is that of the request, encoded; a URL as configured has none.
        """
        limits = limits or self._limits
        whole = f"{url}?{query}" if query else url
        target = check_url(whole, self._policy, allow_query=bool(query))
        outgoing = Outgoing(method, target, _sendable(headers), content)
        attempt = 0
        while True:
            try:
                return self._attempt(outgoing, limits)
            except HttpFailed as error:
                if not error.is_retried or attempt >= limits.retries:
                    raise
                asked = error.retry_after
            self._wait(delay_ms(attempt, backoff_ms=limits.backoff_ms, retry_after=asked) / 1000)
            attempt += 1

    def exchange(
        self,
        method: str,
        url: str,
        content: bytes,
        headers: Mapping[str, str],
        limits: Limits | None = None,
        *,
        reads_body: bool = True,
    ) -> Exchanged:
        """One attempt, and whatever the server says; for clients that read refusals themselves.

        The URL may have a query. Without ``reads_body`` the answer is that of its headers, and
        the connection is given up. Raises ``UrlBlocked`` or ``HttpFailed``.
        """
        limits = limits or self._limits
        target = check_url(url, self._policy, allow_query=True)
        outgoing = Outgoing(method, target, _sendable(headers), content)
        with _timed(limits, outgoing) as span:
            response = self._send(outgoing, limits, self._policy)
            try:
                span.set("http.response.status_code", response.status)
                body = b"".join(_chunks(response, limits.max_bytes)) if reads_body else b""
                return Exchanged(response.status, _fields(response), body)
            finally:
                response.close()

    @contextmanager
    def stream(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        limits: Limits | None = None,
        max_redirects: int = 0,
    ) -> Iterator[Streamed]:
        """GET a body piece by piece, in one attempt, following at most so many redirects.

        A redirect leads to HTTPS (or from loopback to loopback), is judged like any URL, and gets
        no header but the range when it leaves the server. Raises ``UrlBlocked`` or
        ``HttpFailed``, also while reading.
        """
        limits = limits or self._limits
        sent = {"Accept": "*/*", **(headers or {})}
        outgoing = Outgoing("GET", check_url(url, self._policy), _sendable(sent))
        with _timed(limits, outgoing) as span:
            response = self._followed(outgoing, limits, max_redirects)
            try:
                span.set("http.response.status_code", response.status)
                _check(response)
                chunks = _chunks(response, limits.max_bytes)
                yield Streamed(response.status, _fields(response), chunks)
            finally:
                response.close()

    def close(self) -> None:
        """Close idle connections."""
        self._pools.close()

    def _attempt(self, outgoing: Outgoing, limits: Limits) -> bytes:
        with _timed(limits, outgoing) as span:
            response = self._send(outgoing, limits, self._policy)
            try:
                span.set("http.response.status_code", response.status)
                _check(response)
                return b"".join(_chunks(response, limits.max_bytes))
            finally:
                response.close()

    def _followed(self, outgoing: Outgoing, limits: Limits, left: int) -> httpcore.Response:
        """The first answer that is no redirect, or the one after the last allowed."""
        policy = self._policy
        while True:
            response = self._send(outgoing, limits, policy)
            location = _fields(response).get("location")
            if not left or location is None or not 300 <= response.status < 400:
                return response
            response.close()
            policy = _redirect_policy(policy, outgoing.target)
            outgoing = _redirected(outgoing, location, policy)
            left -= 1

    def _send(self, outgoing: Outgoing, limits: Limits, policy: UrlPolicy) -> httpcore.Response:
        timeouts = dict.fromkeys(("read", "write", "pool"), limits.total_s)
        timeouts["connect"] = limits.connect_s
        return self._pools.send(outgoing, policy=policy, timeouts=timeouts)


def _sendable(headers: Mapping[str, str]) -> Mapping[str, str]:
    """Headers as given. Only a key that was pasted wrongly holds what no header may."""
    if not all(value.isascii() and value.isprintable() for value in headers.values()):
        raise HttpFailed("The key holds characters that cannot be sent.", code="auth_failed")
    return headers


def _redirect_policy(policy: UrlPolicy, origin: Target) -> UrlPolicy:
    """HTTPS only, and nothing that is not on this machine may lead to it."""
    stays = policy.allow_loopback and origin.is_loopback
    return dataclasses.replace(
        policy, require_https=True, allow_loopback=stays, names_may_be_loopback=stays
    )


def _redirected(outgoing: Outgoing, location: str, policy: UrlPolicy) -> Outgoing:
    origin = outgoing.target
    # A fragment is the browser's affair.
    following = urljoin(origin.url, location.partition("#")[0])
    target = check_url(following, policy, allow_query=True)
    kept = outgoing.headers
    if (target.scheme, target.host, target.port) != (origin.scheme, origin.host, origin.port):
        kept = {name: kept[name] for name in kept if name.lower() in KEPT_ACROSS_ORIGINS}
    return Outgoing(outgoing.method, target, kept)


def _check(response: httpcore.Response) -> None:
    """Raise unless the answer is a success that can be read as it comes."""
    fields = _fields(response)
    found = outcome(response.status)
    if found.error:
        body = _refusal(response)
        raise HttpFailed(
            f"The server answered with status {response.status}.",
            code="auth_failed" if refused_key(body) else found.error,
            status=response.status,
            retry_after=asked_wait(fields.get("retry-after"), body),
        )
    if fields.get("content-encoding", "identity").lower() != "identity":
        raise HttpFailed("The answer is compressed, unasked.", code="invalid_response")


def _refusal(response: httpcore.Response) -> bytes:
    """The beginning of a refusal's body, where it may say how long to wait or what is wrong."""
    body = b""
    if response.status not in TELLING:
        return body
    with suppress(httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError):
        for chunk in response.iter_stream():
            body += chunk
            if len(body) >= MAX_REFUSAL:
                break
    return body


def _chunks(response: httpcore.Response, max_bytes: int) -> Iterator[bytes]:
    size = 0
    for chunk in response.iter_stream():
        size += len(chunk)
        if size > max_bytes:
            raise HttpFailed("The answer is too large.", code="response_too_large")
        yield chunk


def _fields(response: httpcore.Response) -> dict[str, str]:
    return {
        name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers
    }


@contextmanager
def _timed(limits: Limits, outgoing: Outgoing) -> Iterator[Span]:
    """One attempt: its span, its moment of ending, and the library's errors as ``HttpFailed``."""
    with span_of(outgoing) as span, _in_time(limits):
        yield span


def span_of(outgoing: Outgoing) -> AbstractContextManager[Span]:
    """A span around a request. It tells the host and not the path, which may be a secret."""
    named: dict[str, Value] = {
        "http.request.method": outgoing.method,
        "server.address": outgoing.target.host,
        "server.port": outgoing.target.port,
    }
    return spans.span(outgoing.method, "client", attributes=named)


@contextmanager
def _in_time(limits: Limits) -> Iterator[None]:
    token = deadline.set(time.monotonic() + limits.total_s)
    try:
        yield
    except NETWORK_ERRORS as error:
        raise failure(error) from error
    finally:
        deadline.reset(token)
