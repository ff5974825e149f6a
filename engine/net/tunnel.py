"""Connections through a proxy: HTTP CONNECT, plain forwarding, and SOCKS5.

The proxy itself is the operator's choice and may be anywhere but at a metadata address. Where the
proxy resolves names, the target's address cannot be pinned; its text was judged all the same.
With ``socks5`` the name is resolved and judged here, and the proxy is given the address.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable

import httpcore

from engine.net import handshakes
from engine.net.addresses import Address, is_address
from engine.net.handshakes import Steps
from engine.net.pinned import PinnedBackend, Resolve, in_time
from engine.net.policy import OPERATOR, UrlPolicy, check_addresses
from engine.net.proxies import Proxy


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
                _speak(stream, handshakes.socks(proxy, named, port), timeout)
            elif not self._forwards:
                _speak(stream, handshakes.connect(proxy, named, port), timeout)
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


def _speak(stream: httpcore.NetworkStream, steps: Steps, timeout: float | None) -> None:
    received: bytes | None = None
    while True:
        try:
            # A generator is begun with None.
            step = next(steps) if received is None else steps.send(received)
        except StopIteration:
            return
        if isinstance(step, int):
            received = stream.read(step, timeout)
        else:
            stream.write(step, timeout)
            received = b""
