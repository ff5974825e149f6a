"""Open connections, kept apart by the policy they were checked against and the way they take."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock

import certifi
import httpcore

from engine.net.handshakes import authorization
from engine.net.pinned import PinnedBackend, Resolve
from engine.net.policy import Target, UrlPolicy
from engine.net.proxies import Proxies, Proxy
from engine.net.tunnel import ProxyBackend

KEEPALIVE_S = 30.0


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request to a target that the policy allows."""

    method: str
    target: Target
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    content: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class Way:
    """How requests travel. ``forwards``: the proxy reads whole requests, which only plain HTTP
    allows."""

    policy: UrlPolicy
    proxy: Proxy | None
    forwards: bool


class Pools:
    """Thread-safe."""

    def __init__(self, proxies: Proxies, *, resolve: Resolve, tls: ssl.SSLContext | None) -> None:
        self._proxies = proxies
        self._resolve = resolve
        self._tls = tls or trusted()
        self._lock = Lock()
        self._pools: dict[Way, httpcore.ConnectionPool] = {}

    def send(
        self, outgoing: Outgoing, *, policy: UrlPolicy, timeouts: Mapping[str, float]
    ) -> httpcore.Response:
        """Send a request; the body of the answer is still to be read. Raises ``UrlBlocked``."""
        way = way_of(outgoing.target, policy, self._proxies)
        return self._pool(way).handle_request(request_of(outgoing, way, timeouts))

    def close(self) -> None:
        """Close idle connections."""
        with self._lock:
            pools, self._pools = list(self._pools.values()), {}
        for pool in pools:
            pool.close()

    def _pool(self, way: Way) -> httpcore.ConnectionPool:
        with self._lock:
            if way not in self._pools:
                self._pools[way] = httpcore.ConnectionPool(
                    ssl_context=self._tls,
                    network_backend=self._backend(way),
                    keepalive_expiry=KEEPALIVE_S,
                )
            return self._pools[way]

    def _backend(self, way: Way) -> httpcore.NetworkBackend:
        if way.proxy is None:
            return PinnedBackend(way.policy, self._resolve)
        return ProxyBackend(
            way.proxy,
            policy=way.policy,
            resolve=self._resolve,
            tls=self._tls,
            forwards=way.forwards,
        )


def way_of(target: Target, policy: UrlPolicy, proxies: Proxies) -> Way:
    """The way to a target. Raises ``UrlBlocked`` for a proxy that cannot be used."""
    proxy = proxies.route(target)
    forwards = proxy is not None and not proxy.is_socks and target.scheme == "http"
    return Way(policy, proxy, forwards)


def request_of(outgoing: Outgoing, way: Way, timeouts: Mapping[str, float]) -> httpcore.Request:
    """A request in the network library's words."""
    request = _request(outgoing)
    if way.proxy is not None and way.forwards:
        _through(request, outgoing.target, way.proxy)
    request.extensions["timeout"] = dict(timeouts)
    return request


def _request(outgoing: Outgoing) -> httpcore.Request:
    target = outgoing.target
    sent = {
        "Host": target.authority,
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "User-Agent": "memory-studio",
        **outgoing.headers,
    }
    if outgoing.content:
        sent["Content-Length"] = str(len(outgoing.content))
    url = httpcore.URL(
        scheme=target.scheme.encode(),
        host=target.host.encode(),
        port=target.port,
        target=target.path.encode(),
    )
    return httpcore.Request(
        outgoing.method, url, headers=list(sent.items()), content=outgoing.content
    )


def _through(request: httpcore.Request, target: Target, proxy: Proxy) -> None:
    """Make a request one that a forwarding proxy reads: the full URL as its target."""
    request.url.target = target.url.encode()
    given = authorization(proxy)
    if given is not None:
        request.headers.append((b"Proxy-Authorization", given.encode()))


def trusted() -> ssl.SSLContext:
    """The system's certificate authorities and those of certifi; verification is always on."""
    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return context
