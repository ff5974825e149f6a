"""Serving in this one process with granian, and a stop that is clean and quick."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import errno
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, Final

from memstudio.bridge import AsgiApplication
from memstudio.errors import StartError

STOP_WITHIN_S: Final = 2.0
"""After this a request or a job that still runs is left behind; its row remembers a job."""
PROBE_EVERY_S: Final = 0.02
BACKLOG: Final = 1024
MAX_REQUESTS: Final = 16_384
"""How many requests may be open at once: a stream that is idle costs a few kilobytes."""
MAX_FILES: Final = 65_536


def port(text: str) -> int:
    """A port as it is typed; for ``argparse``."""
    number = int(text) if text.isdecimal() and len(text) <= 5 else 0
    if not 1 <= number <= 65535:
        raise argparse.ArgumentTypeError("a port is a number from 1 to 65535")
    return number


def check_address(host: str, port: int) -> None:
    """Raise ``StartError`` when the address cannot be listened on."""
    try:
        family, kind, protocol, _name, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            probe.listen(1)
    except OSError as error:
        raise StartError(_refusal(host, port, error)) from None


def reachable(host: str) -> str:
    """The host a program on this machine connects to."""
    return "127.0.0.1" if host in ("", "0.0.0.0", "::") else host  # noqa: S104 - only compared


def base_url(host: str, port: int) -> str:
    """The address a browser on this machine opens."""
    name = reachable(host)
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


def serve(
    application: AsgiApplication, *, host: str, port: int, on_ready: Callable[[], None]
) -> None:
    """Serve until SIGINT or SIGTERM. A second signal ends the process at once.

    ``on_ready`` is called in a thread as soon as the port answers.
    """
    _allow_many_files()
    asyncio.run(_serve(application, host, port, on_ready))


def _allow_many_files() -> None:
    """Raise the process's own limit: a stream through the gateway holds two connections."""
    # Not on Windows, which knows no such limit, and not beyond what the machine allows.
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_FILES)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))


def leave() -> None:
    """End the process without waiting for threads that would not stop in time.

    A job that was cut off keeps its row; the database takes back what was not committed.
    """
    stuck = [thread for thread in threading.enumerate() if thread is not threading.main_thread()]
    if stuck:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


async def _serve(
    application: AsgiApplication, host: str, port: int, on_ready: Callable[[], None]
) -> None:
    from granian.constants import Interfaces
    from granian.server.embed import Server

    server = Server(
        application,
        address=host,
        port=port,
        interface=Interfaces.ASGI,
        websockets=False,
        backlog=BACKLOG,
        backpressure=MAX_REQUESTS,
        log_enabled=False,
    )
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()
    with _signals(lambda: loop.call_soon_threadsafe(stopping.set)):
        running = asyncio.create_task(server.serve())
        waiting = asyncio.create_task(stopping.wait())
        greeting = asyncio.create_task(_greet(host, port, on_ready))
        await asyncio.wait({running, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        greeting.cancel()
        server.stop()
        await asyncio.wait({running}, timeout=STOP_WITHIN_S)
        if running.done():
            running.result()


async def _greet(host: str, port: int, on_ready: Callable[[], None]) -> None:
    # granian does not say when it listens.
    while True:
        with contextlib.suppress(OSError):
            _reader, writer = await asyncio.open_connection(reachable(host), port)
            writer.close()
            break
        await asyncio.sleep(PROBE_EVERY_S)
    await asyncio.to_thread(on_ready)


@contextlib.contextmanager
def _signals(stop: Callable[[], Any]) -> Iterator[None]:
    seen = 0

    def handle(_number: int, _frame: FrameType | None) -> None:
        nonlocal seen
        seen += 1
        if seen > 1:
            os._exit(130)
        stop()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _refusal(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} is in use; stop the other program, or choose a port with --port."
    if error.errno == errno.EACCES:
        return f"Port {port} may not be used by this user; choose one with --port."
    return f"{host} is not an address of this machine; choose one with --host."
