"""What is said to a proxy before the connection is the target's: HTTP CONNECT and SOCKS5.

Steps without a network of their own, so that threads and event loops speak them alike: bytes are
to be sent, a number asks for at most so many bytes, which come back; none means the end.
"""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Generator

import httpcore

from engine.net.addresses import Address
from engine.net.proxies import Proxy

Steps = Generator[bytes | int, bytes, None]

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


def connect(proxy: Proxy, host: str | Address, port: int) -> Steps:
    """Ask an HTTP proxy for a tunnel (RFC 9110, section 9.3.6)."""
    named = f"[{host}]:{port}" if isinstance(host, ipaddress.IPv6Address) else f"{host}:{port}"
    lines = [f"CONNECT {named} HTTP/1.1", f"Host: {named}"]
    given = authorization(proxy)
    if given is not None:
        lines.append(f"Proxy-Authorization: {given}")
    yield "\r\n".join([*lines, "", ""]).encode("ascii")
    head = b""
    while b"\r\n\r\n" not in head:
        received = yield 4096
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


def socks(proxy: Proxy, host: str | Address, port: int) -> Steps:
    """Ask a SOCKS5 proxy for a connection (RFC 1928, 1929)."""
    wanted = 2 if proxy.credentials else 0
    yield bytes([5, 1, wanted])
    if (yield from _exactly(2)) != bytes([5, wanted]):
        raise ProxyRefused("the proxy wants another way to sign in")
    if proxy.credentials:
        user, password = (text.encode()[:255] for text in proxy.credentials)
        yield bytes([1, len(user)]) + user + bytes([len(password)]) + password
        if (yield from _exactly(2))[1] != 0:
            raise ProxyRefused("the proxy refused the credentials")
    yield bytes([5, 1, 0]) + _socks_host(host) + port.to_bytes(2, "big")
    _, reply, _, kind = yield from _exactly(4)
    if reply:
        refusal = httpcore.ConnectError if reply in SOCKS_UNREACHABLE else ProxyRefused
        raise refusal("the proxy cannot connect")
    length = {1: 4, 4: 16}.get(kind) or (yield from _exactly(1))[0]
    yield from _exactly(length + 2)


def _socks_host(host: str | Address) -> bytes:
    if isinstance(host, str):
        name = host.encode("ascii")
        return bytes([3, len(name)]) + name
    return bytes([1 if host.version == 4 else 4]) + host.packed


def _exactly(size: int) -> Generator[bytes | int, bytes, bytes]:
    """Read exactly so many bytes; never one more, they belong to the target."""
    found = b""
    while len(found) < size:
        received = yield size - len(found)
        if not received:
            raise httpcore.ConnectError("the proxy hung up")
        found += received
    return found
