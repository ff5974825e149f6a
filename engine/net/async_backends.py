"""Connections on an event loop, to addresses that were checked, or through a proxy.

What ``pinned`` and ``tunnel`` do for threads.
"""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
from collections.abc import Iterable, Sequence
from threading import Thread

import httpcore

from engine.net import handshakes
from engine.net.addresses import Address, is_address
from engine.net.errors import UrlBlocked
from engine.net.handshakes import Steps
from engine.net.pinned import Resolve
from engine.net.policy import OPERATOR, UrlPolicy, check_addresses
from engine.net.proxies import Proxy


async def resolved(
    resolve: Resolve, host: str, port: int, timeout: float | None
) -> Sequence[Address]:
    """Resolve a host within a time; an address is itself.

    The system's resolver knows no time limit, so it works in a thread that may be left behind.
    """
    try:
        return [ipaddress.ip_address(host)]
    except ValueError:
        pass
    loop = asyncio.get_running_loop()
    found: asyncio.Future[Sequence[Address]] = loop.create_future()

    def tell(addresses: Sequence[Address]) -> None:
        if not found.done():
            found.set_result(addresses)

    def work() -> None:
        addresses = resolve(host, port)
        # The loop may be gone by now, with whoever waited.
        if not loop.is_closed():
            loop.call_soon_threadsafe(tell, addresses)

    Thread(target=work, name="resolve", daemon=True).start()
    try:
        return await asyncio.wait_for(found, timeout)
    except TimeoutError:
        raise httpcore.ConnectTimeout("the name was not resolved in time") from None


class AsyncPinnedBackend(httpcore.AsyncNetworkBackend):
    """Connects only to addresses that were checked."""

    def __init__(self, policy: UrlPolicy, resolve: Resolve) -> None:
        self._policy = policy
        self._resolve = resolve
        self._inner = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to the first address that answers. Raises ``UrlBlocked``."""
        addresses = await resolved(self._resolve, host, port, timeout)
        check_addresses(host, addresses, self._policy)
        failure: Exception = httpcore.ConnectError("no address answered")
        for address in addresses:
            try:
                return await self._inner.connect_tcp(
                    str(address), port, timeout, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Never allowed."""
        raise UrlBlocked("scheme")


class AsyncProxyBackend(httpcore.AsyncNetworkBackend):
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
        self._dial = AsyncPinnedBackend(OPERATOR, resolve)

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to the proxy and through it. Raises ``UrlBlocked`` and ``ProxyRefused``."""
        proxy = self._proxy
        named = await self._named(host, port, timeout)
        stream = await self._dial.connect_tcp(
            proxy.host, proxy.port, timeout, local_address, socket_options
        )
        try:
            if proxy.scheme == "https":
                stream = await stream.start_tls(self._tls, proxy.host, timeout)
            if proxy.is_socks:
                await _speak(stream, handshakes.socks(proxy, named, port), timeout)
            elif not self._forwards:
                await _speak(stream, handshakes.connect(proxy, named, port), timeout)
        except BaseException:
            await stream.aclose()
            raise
        return stream

    async def _named(self, host: str, port: int, timeout: float | None) -> str | Address:
        """What the proxy is told: an address, or a name that it resolves itself."""
        if self._proxy.resolves_names and not is_address(host):
            return host
        addresses = await resolved(self._resolve, host, port, timeout)
        check_addresses(host, addresses, self._policy)
        return addresses[0]


async def _speak(stream: httpcore.AsyncNetworkStream, steps: Steps, timeout: float | None) -> None:
    received: bytes | None = None
    while True:
        try:
            # A generator is begun with None.
            step = next(steps) if received is None else steps.send(received)
        except StopIteration:
            return
        if isinstance(step, int):
            received = await stream.read(step, timeout)
        else:
            await stream.write(step, timeout)
            received = b""
