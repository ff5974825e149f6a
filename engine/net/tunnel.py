"""Connections through a proxy: HTTP CONNECT, plain forwarding, and SOCKS5 (RFC 1928, 1929).

The proxy itself is the operator's choice and may be anywhere but at a metadata address. Where the
proxy resolves names, the target's address cannot be pinned; its text was judged all the same.
With ``socks5`` the name is resolved and judged here, and the proxy is given the address.
"""

from __future__ import annotations

import base64
import ipaddress
import ssl
from collections.abc import Iterable

import httpcore

from engine.net.addresses import Address, is_address
from engine.net.pinned import PinnedBackend, Resolve, in_time
from engine.net.policy import OPERATOR, UrlPolicy, check_addresses
from engine.net.proxies import Proxy

MAX_HEAD = 16_384
GIVES_UP = frozenset({b"502", b"503", b"504"})
"""Answers to CONNECT that mean: the target could not be reached."""

SOCKS_UNREACHABLE = frozenset({1, 3, 4, 5, 6})
"""Replies of a SOCKS5 proxy that mean the same."""


class ProxyRefused(httpcore.ProxyError):
    """The proxy does not let the connection pass; asking again would not help."""


def authorization(proxy: Proxy) -> str | None:
    """The value of ``Proxy-Authorization``, None without credentials."""
    if proxy.credentials is None:
        return None
    return "Basic " + base64.b64encode(":".join(proxy.credentials).encode()).decode("ascii")


class ProxyBackend(httpcore.NetworkBackend):
    """Network backend of a pool whose connections all go through one proxy.

    ``forwards``: the stream ends at the proxy, which reads the full URL of each request.
    Otherwise it ends at the target.
    """

    def __init__(
        self,
        proxy: Proxy,
        *,
        policy: UrlPolicy,
        resolve: Resolve,
        tls: ssl.SSLContext,
        forwards: bool,
    ) -> None:
        self._proxy = proxy
        self._policy = policy
        self._resolve = resolve
        self._tls = tls
        self._forwards = forwards
        self._dial = PinnedBackend(OPERATOR, resolve)

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        """Connect to the proxy and through it. Raises ``UrlBlocked`` and ``ProxyRefused``."""
        proxy = self._proxy
        named = self._named(host, port)
        stream = self._dial.connect_tcp(
            proxy.host, proxy.port, timeout, local_address, socket_options
        )
        try:
            if proxy.scheme == "https":
                stream = stream.start_tls(self._tls, proxy.host, timeout)
            if proxy.is_socks:
                _socks(stream, proxy, named, port, timeout)
            elif not self._forwards:
                _connect(stream, proxy, named, port, timeout)
        except BaseException:
            stream.close()
            raise
        return stream

    def _named(self, host: str, port: int) -> str | Address:
        """What the proxy is told: an address, or a name that it resolves itself."""
        if self._proxy.resolves_names and not is_address(host):
            return host
        addresses = in_time(self._resolve, host, port)
        check_addresses(host, addresses, self._policy)
        return addresses[0]


def _connect(
    stream: httpcore.NetworkStream,
    proxy: Proxy,
    host: str | Address,
    port: int,
    timeout: float | None,
) -> None:
    """Ask an HTTP proxy for a tunnel (RFC 9110, section 9.3.6)."""
    named = f"[{host}]:{port}" if isinstance(host, ipaddress.IPv6Address) else f"{host}:{port}"
    lines = [f"CONNECT {named} HTTP/1.1", f"Host: {named}"]
    given = authorization(proxy)
    if given is not None:
        lines.append(f"Proxy-Authorization: {given}")
    stream.write("\r\n".join([*lines, "", ""]).encode("ascii"), timeout)
    head = b""
    while b"\r\n\r\n" not in head:
        received = stream.read(4096, timeout)
        if not received or len(head) > MAX_HEAD:
            raise httpcore.ConnectError("the proxy hung up")
        head += received
    version, _, rest = head.partition(b" ")
    status = rest[:3]
    if not version.startswith(b"HTTP/1.") or status in GIVES_UP:
        raise httpcore.ConnectError("the proxy cannot reach the server")
    # Nothing may follow the head: the server of a TLS connection speaks second.
    if not status.startswith(b"2") or not head.endswith(b"\r\n\r\n"):
        raise ProxyRefused("the proxy refused the tunnel")


def _socks(
    stream: httpcore.NetworkStream,
    proxy: Proxy,
    host: str | Address,
    port: int,
    timeout: float | None,
) -> None:
    """Ask a SOCKS5 proxy for a connection."""
    wanted = 2 if proxy.credentials else 0
    stream.write(bytes([5, 1, wanted]), timeout)
    if _exactly(stream, 2, timeout) != bytes([5, wanted]):
        raise ProxyRefused("the proxy wants another way to sign in")
    if proxy.credentials:
        user, password = (text.encode()[:255] for text in proxy.credentials)
        stream.write(bytes([1, len(user)]) + user + bytes([len(password)]) + password, timeout)
        if _exactly(stream, 2, timeout)[1] != 0:
            raise ProxyRefused("the proxy refused the credentials")
    stream.write(bytes([5, 1, 0]) + _socks_host(host) + port.to_bytes(2, "big"), timeout)
    _, reply, _, kind = _exactly(stream, 4, timeout)
    if reply:
        refusal = httpcore.ConnectError if reply in SOCKS_UNREACHABLE else ProxyRefused
        raise refusal("the proxy cannot connect")
    length = {1: 4, 4: 16}.get(kind) or _exactly(stream, 1, timeout)[0]
    _exactly(stream, length + 2, timeout)


def _socks_host(host: str | Address) -> bytes:
    if isinstance(host, str):
        name = host.encode("ascii")
        return bytes([3, len(name)]) + name
    return bytes([1 if host.version == 4 else 4]) + host.packed


def _exactly(stream: httpcore.NetworkStream, size: int, timeout: float | None) -> bytes:
    """Read exactly so many bytes; never one more, they belong to the target."""
    found = b""
    while len(found) < size:
        received = stream.read(size - len(found), timeout)
        if not received:
            raise httpcore.ConnectError("the proxy hung up")
        found += received
    return found
