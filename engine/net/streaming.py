"""Outbound HTTP on an event loop: the same policy, pinned addresses and proxies as the client's.

For exchanges that are passed on while they arrive: an idle stream costs no thread. Time is
limited for connecting, for the head of the answer and between two pieces of it, not as a whole.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

import httpcore

from engine.net.async_backends import AsyncPinnedBackend, AsyncProxyBackend
from engine.net.client import MIB, span_of
from engine.net.errors import HttpFailed
from engine.net.failures import NETWORK_ERRORS, failure
from engine.net.pinned import Resolve, resolve
from engine.net.policy import OPERATOR, UrlPolicy, check_url
from engine.net.pools import KEEPALIVE_S, Outgoing, Way, request_of, trusted, way_of
from engine.net.proxies import DIRECT, Proxies

MAX_IDLE_CONNECTIONS = 64


@dataclass(frozen=True, slots=True)
class StreamLimits:
    """Times in seconds; ``idle_s`` is for the head of the answer and for each silence after it."""

    connect_s: float = 10.0
    idle_s: float = 600.0
    max_bytes: int = 512 * MIB


class Incoming:
    """An answer whose body is still to be read. Names of ``headers`` are in lower case."""

    def __init__(self, response: httpcore.Response, limits: StreamLimits) -> None:
        self.status = response.status
        self.headers = [(name.lower(), value) for name, value in response.headers]
        self._response = response
        self._limits = limits

    def header(self, name: bytes) -> bytes:
        """The first header of this name, or nothing."""
        return next((value for key, value in self.headers if key == name), b"")

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body as it comes. Raises ``HttpFailed`` when it breaks off."""
        size = 0
        try:
            async for chunk in self._response.aiter_stream():
                size += len(chunk)
                if size > self._limits.max_bytes:
                    raise HttpFailed("The answer is too large.", code="response_too_large")
                yield chunk
        except NETWORK_ERRORS as error:
            raise failure(error) from error

    async def read(self, max_bytes: int) -> bytes:
        """The whole body. Raises ``HttpFailed`` when it breaks off or is larger."""
        body = bytearray()
        async for chunk in self.chunks():
            body += chunk
            if len(body) > max_bytes:
                raise HttpFailed("The answer is too large.", code="response_too_large")
        return bytes(body)

    async def close(self) -> None:
        """Let go of the connection; one that was not read to its end is cut."""
        await self._response.aclose()


class StreamingClient:
    """Belongs to one event loop; keeps connections open between requests. No retries."""

    def __init__(
        self,
        policy: UrlPolicy = OPERATOR,
        *,
        proxies: Proxies = DIRECT,
        resolve: Resolve = resolve,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._policy = policy
        self._proxies = proxies
        self._resolve = resolve
        self._tls = tls or trusted()
        self._pools: dict[Way, httpcore.AsyncConnectionPool] = {}

    async def send(
        self,
        method: str,
        url: str,
        content: bytes,
        headers: Mapping[str, str],
        limits: StreamLimits,
    ) -> Incoming:
        """Send a request and wait for the head of the answer, whatever its status.

        The URL may have a query. Redirects are answers like others. Raises ``UrlBlocked`` or
        ``HttpFailed``.
        """
        target = check_url(url, self._policy, allow_query=True)
        way = way_of(target, self._policy, self._proxies)
        timeouts = {"connect": limits.connect_s, "read": limits.idle_s, "write": limits.idle_s}
        outgoing = Outgoing(method, target, headers, content)
        request = request_of(outgoing, way, timeouts)
        with span_of(outgoing) as span:
            try:
                # A head that drips on is cut as well.
                async with asyncio.timeout(limits.connect_s + limits.idle_s):
                    response = await self._pool(way).handle_async_request(request)
            except TimeoutError as error:
                raise HttpFailed("The server did not answer in time.", code="timeout") from error
            except NETWORK_ERRORS as error:
                raise failure(error) from error
            span.set("http.response.status_code", response.status)
        return Incoming(response, limits)

    async def close(self) -> None:
        """Close every connection."""
        pools, self._pools = list(self._pools.values()), {}
        for pool in pools:
            await pool.aclose()

    def _pool(self, way: Way) -> httpcore.AsyncConnectionPool:
        if way not in self._pools:
            self._pools[way] = httpcore.AsyncConnectionPool(
                ssl_context=self._tls,
                network_backend=self._backend(way),
                max_connections=None,
                max_keepalive_connections=MAX_IDLE_CONNECTIONS,
                keepalive_expiry=KEEPALIVE_S,
            )
        return self._pools[way]

    def _backend(self, way: Way) -> httpcore.AsyncNetworkBackend:
        if way.proxy is None:
            return AsyncPinnedBackend(way.policy, self._resolve)
        return AsyncProxyBackend(
            way.proxy,
            policy=way.policy,
            resolve=self._resolve,
            tls=self._tls,
            forwards=way.forwards,
        )
