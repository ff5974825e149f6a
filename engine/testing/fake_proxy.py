"""A proxy on loopback: HTTP forwarding, CONNECT and SOCKS5, every name leading to one place."""

from __future__ import annotations

import ipaddress
import select
import socket
import ssl
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from socketserver import BaseRequestHandler, ThreadingTCPServer
from threading import Thread


class FakeProxy:
    """Notes what it was asked for. ``status`` or ``reply`` other than 200 and 0 refuse."""

    def __init__(self, upstream_port: int) -> None:
        self.upstream_port = upstream_port
        self.port = 0
        self.asked: list[str] = []
        self.credentials: list[str | None] = []
        self.status = 200
        self.reply = 0
        self.wants_password = False
        self.bound = bytes([1, 0, 0, 0, 0])
        """Type and address of the answer to a SOCKS request."""

    def upstream(self) -> socket.socket:
        """A connection to the one server behind the proxy."""
        return socket.create_connection(("127.0.0.1", self.upstream_port), timeout=30)


@contextmanager
def proxying(upstream_port: int, tls: ssl.SSLContext | None = None) -> Iterator[FakeProxy]:
    """Run a proxy on a free port of 127.0.0.1."""
    proxy = FakeProxy(upstream_port)
    server = _Server(("127.0.0.1", 0), _handler(proxy, tls))
    proxy.port = server.server_address[1]
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is part of the tests."""


def _handler(proxy: FakeProxy, tls: ssl.SSLContext | None) -> type[BaseRequestHandler]:
    class Handler(BaseRequestHandler):
        def handle(self) -> None:
            plain: socket.socket = self.request
            plain.settimeout(30)
            client = tls.wrap_socket(plain, server_side=True) if tls else plain
            with closing(client):
                first = client.recv(1)
                if first == b"\x05":
                    _socks(proxy, client)
                elif first:
                    _http(proxy, client, first)

    return Handler


def _http(proxy: FakeProxy, client: socket.socket, head: bytes) -> None:
    while b"\r\n\r\n" not in head:
        head += client.recv(4096)
    line, *fields = head.partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")
    method, target, _ = line.split(" ")
    sent = {name.lower(): value for name, _, value in (field.partition(": ") for field in fields)}
    proxy.asked.append(f"{method} {target}")
    proxy.credentials.append(sent.get("proxy-authorization"))
    if proxy.status != 200:
        client.sendall(f"HTTP/1.1 {proxy.status} No\r\nContent-Length: 0\r\n\r\n".encode())
        return
    with proxy.upstream() as server:
        if method == "CONNECT":
            client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            path = "/" + target.split("/", 3)[3]
            server.sendall(head.replace(target.encode(), path.encode(), 1))
        _relay(client, server)


def _socks(proxy: FakeProxy, client: socket.socket) -> None:
    methods = client.recv(client.recv(1)[0])
    if proxy.wants_password:
        client.sendall(b"\x05\x02" if 2 in methods else b"\x05\xff")
        if 2 not in methods:
            return
        client.recv(1)
        user, password = (client.recv(client.recv(1)[0]).decode() for _ in range(2))
        proxy.credentials.append(f"{user}:{password}")
        client.sendall(b"\x01\x00")
    else:
        client.sendall(b"\x05\x00")
    kind = client.recv(4)[3]
    if kind == 3:
        host = client.recv(client.recv(1)[0]).decode()
    else:
        host = str(ipaddress.ip_address(client.recv(4 if kind == 1 else 16)))
    proxy.asked.append(f"{host}:{int.from_bytes(client.recv(2), 'big')}")
    client.sendall(bytes([5, proxy.reply, 0]) + proxy.bound + b"\x00\x00")
    if not proxy.reply:
        with proxy.upstream() as server:
            _relay(client, server)


def _relay(client: socket.socket, server: socket.socket) -> None:
    """Carry bytes both ways in one thread: a TLS connection is not for two at a time."""
    sink_of = {client: server, server: client}
    with suppress(OSError):
        while sink_of:
            readable, _, _ = select.select(list(sink_of), [], [], 30)
            if not readable:
                return
            for source in readable:
                if not _carry(source, sink_of[source]):
                    del sink_of[source]


def _carry(source: socket.socket, sink: socket.socket) -> bool:
    """Pass on what has arrived; False, and the sink told, at the end."""
    while piece := source.recv(65536):
        sink.sendall(piece)
        if not (isinstance(source, ssl.SSLSocket) and source.pending()):
            return True
    sink.shutdown(socket.SHUT_WR)
    return False
