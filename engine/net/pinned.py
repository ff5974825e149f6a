"""Connects only to addresses that were checked, within the time a request has left.

The name is resolved once for each connection, every answer is judged, and the connection goes to
one of those very addresses: a name that changes its answer in between leads nowhere new. TLS still
speaks to, and verifies, the name.
"""

from __future__ import annotations

import ipaddress
import socket
import ssl
import time
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from queue import Empty, SimpleQueue
from threading import Thread

import httpcore

from engine.net.addresses import Address
from engine.net.errors import UrlBlocked
from engine.net.policy import UrlPolicy, check_addresses

Resolve = Callable[[str, int], Sequence[Address]]
"""Every address of a host; empty when there is none."""

deadline: ContextVar[float] = ContextVar("deadline")
"""Moment (``time.monotonic``) at which the request of this thread must be over."""


def resolve(host: str, port: int) -> Sequence[Address]:
    """The system's resolver."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return [ipaddress.ip_address(str(entry[4][0])) for entry in found]


def in_time(resolve: Resolve, host: str, port: int) -> Sequence[Address]:
    """Resolve a host within the time the request has left; an address is itself.

    The system's resolver knows no time limit, so it works in a thread that may be left behind.
    """
    try:
        return [ipaddress.ip_address(host)]
    except ValueError:
        pass
    found: SimpleQueue[Sequence[Address]] = SimpleQueue()
    Thread(target=lambda: found.put(resolve(host, port)), name="resolve", daemon=True).start()
    try:
        return found.get(timeout=_remaining(None))
    except Empty:
        raise httpcore.ConnectTimeout("the name was not resolved in time") from None


class PinnedBackend(httpcore.NetworkBackend):
    """Network backend of an httpcore pool."""

    def __init__(self, policy: UrlPolicy, resolve: Resolve) -> None:
        self._policy = policy
        self._resolve = resolve
        self._inner = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        """Connect to the first address that answers. Raises ``UrlBlocked``."""
        addresses = in_time(self._resolve, host, port)
        check_addresses(host, addresses, self._policy)
        failure: Exception = httpcore.ConnectError("no address answered")
        for address in addresses:
            try:
                stream = self._inner.connect_tcp(
                    str(address), port, _remaining(timeout), local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
            else:
                return _TimedStream(stream)
        raise failure

    def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        """Never allowed."""
        raise UrlBlocked("scheme")


class _TimedStream(httpcore.NetworkStream):
    """A stream whose every step ends with the request's time, so that no answer can drip on."""

    def __init__(self, inner: httpcore.NetworkStream) -> None:
        self._inner = inner

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, _remaining(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, _remaining(timeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        return _TimedStream(
            self._inner.start_tls(ssl_context, server_hostname, _remaining(timeout))
        )

    def get_extra_info(self, info: str) -> object:
        return self._inner.get_extra_info(info)


def _remaining(timeout: float | None) -> float:
    """The given timeout or the time left, whichever is shorter. Raises when none is left."""
    left = deadline.get() - time.monotonic()
    if left <= 0:
        raise httpcore.ReadTimeout("the request's time is over")
    return left if timeout is None else min(timeout, left)
