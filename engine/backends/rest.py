"""How adapters speak to an HTTP service: one place for the address, credentials and failures."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlencode

from engine.errors import BackendFailed
from engine.net import strict_json
from engine.net.breaker import CircuitBreaker
from engine.net.client import MIB, HttpClient, Limits, Wait, pause
from engine.net.errors import HttpFailed, UrlBlocked
from engine.net.retry import delay_ms
from engine.net.strict_json import Json

MAX_ANSWER: Final = 8 * MIB
MAX_WAIT_S: Final = 10.0
"""Longest wait that a service which is asked too often can make a caller wait."""
MAX_HEALTH_S: Final = 5.0
"""Longest time of a health check, however patient other calls are."""
REFUSALS: Final = 2
"""How often a call is made again that the service refused as one too many."""
PASSING: Final = frozenset({"timeout", "request_failed", "unreachable"})
CODES: Final = {
    "auth_failed": "no_key",
    "rate_limited": "rate_limited",
    "timeout": "timeout",
    "connect_failed": "unreachable",
    "tls_failed": "unreachable",
    "invalid_response": "invalid_response",
    "response_too_large": "too_large",
}
GONE: Final = frozenset({404, 410})


@dataclass(frozen=True, slots=True)
class Address:
    """Where a service is, and what every request to it carries. ``timeout_ms`` is for a call."""

    base_url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout_ms: int = 30_000


@dataclass(frozen=True, slots=True)
class Call:
    """One request: a path that begins with ``/``, encoded already, and what goes with it.

    ``text`` is sent as Markdown, ``body`` as JSON.
    """

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, object] | None = None
    text: str | None = None
    accept: str = "application/json"


class Rest:
    """A service behind the one client for outbound HTTP. Thread-safe.

    After three calls in a row that got no answer the next ones fail at once, for half a minute.
    """

    def __init__(self, address: Address, client: HttpClient, *, wait: Wait = pause) -> None:
        self._base = address.base_url.rstrip("/")
        self._headers = dict(address.headers)
        self._timeout_s = address.timeout_ms / 1000
        self._client = client
        self._wait = wait
        self._breaker: CircuitBreaker[BackendFailed] = CircuitBreaker()

    def json(self, call: Call, *, patient: bool = True) -> Json:
        """The JSON answer of a call. Raises ``BackendFailed``, also for 404."""
        body = self.send(call, patient=patient)
        if body is None:
            raise BackendFailed("The service does not know this address.", code="not_found")
        return parsed(body)

    def send(self, call: Call, *, patient: bool = True) -> bytes | None:
        """The body of the answer; None for 404. Raises ``BackendFailed``.

        ``patient`` False makes one attempt, whatever happened before: for health checks.
        """
        if patient:
            self._breaker.check()
        try:
            body = self._tried(call, REFUSALS if patient else 0)
        except BackendFailed as error:
            if error.code in PASSING:
                self._breaker.failed(error)
            raise
        self._breaker.succeeded()
        return body

    def close(self) -> None:
        """Close idle connections."""
        self._client.close()

    def _tried(self, call: Call, refusals: int) -> bytes | None:
        # Reading twice does no harm; writing twice may store twice.
        retries = 1 if call.method == "GET" and refusals else 0
        limits = Limits(
            connect_s=min(5.0, self._timeout_s),
            total_s=self._timeout_s if refusals else min(MAX_HEALTH_S, self._timeout_s),
            retries=retries,
            max_bytes=MAX_ANSWER,
        )
        for attempt in range(refusals + 1):
            try:
                return self._once(call, limits)
            except HttpFailed as error:
                if error.status in GONE:
                    return None
                if error.status != 429 or attempt == refusals:
                    raise failure(error) from None
                asked = delay_ms(attempt, backoff_ms=500, retry_after=error.retry_after)
            self._wait(min(asked / 1000, MAX_WAIT_S))
        raise BackendFailed(code="rate_limited")

    def _once(self, call: Call, limits: Limits) -> bytes:
        headers = {"Accept": call.accept, **self._headers}
        content = b""
        if call.text is not None:
            content = call.text.encode("utf-8", "replace")
            headers["Content-Type"] = "text/markdown"
        elif call.body is not None:
            content = json.dumps(call.body, ensure_ascii=False).encode("utf-8", "replace")
            headers["Content-Type"] = "application/json"
        url, query = self._base + call.path, urlencode(call.query)
        try:
            return self._client.request(call.method, url, content, headers, limits, query=query)
        except UrlBlocked as error:
            raise BackendFailed(str(error), code="url_blocked") from None


def failure(error: HttpFailed) -> BackendFailed:
    """An error of outbound HTTP as one of a backend."""
    return BackendFailed(str(error), code=CODES.get(error.code, "request_failed"))


def parsed(body: bytes) -> Json:
    """The JSON of a body. Raises ``BackendFailed``."""
    try:
        return strict_json.parse(body)
    except HttpFailed as error:
        raise failure(error) from None
