"""The processes of an installation: each can be killed and started again."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Protocol

import httpx

from engine.testing import postgres_server, redis_server
from engine.testing.postgres_server import PostgresServer, free_port

ROOT: Final = Path(__file__).resolve().parents[2]
START_WITHIN_S: Final = 120.0
POLL_S: Final = 0.05
KEEPS: Final = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}
"""What Postgres has acknowledged it must still have after a kill."""
CELERY: Final = (sys.executable, "-m", "celery", "--quiet", "--app", "memstudio.celery")
WORKER: Final = (
    *(*CELERY, "worker", "--queues", "interactive,bulk"),
    *("--without-gossip", "--without-mingle"),
)


class Killable(Protocol):
    """A server or a process of ours."""

    def start(self) -> None:
        """Start it; returns when it does its work."""
        ...

    def kill(self) -> None:
        """End it with SIGKILL."""
        ...


class Process:
    """A process of ours, whose output goes into a file of its own."""

    def __init__(
        self, command: tuple[str, ...], home: Path, variables: dict[str, str], probe: str = ""
    ) -> None:
        """``probe`` is an address that answers once the process serves."""
        self._command = command
        self._variables = {**variables, "MEMORY_STUDIO_HOME": str(home)}
        self._probe = probe
        self.log = home / "log"
        home.mkdir()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait for its first answer when it gives any."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                cwd=ROOT,
                env=self._variables,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        if self._probe:
            wait_for(self._answers, START_WITHIN_S, "a process to serve")

    def kill(self) -> None:
        """End it with SIGKILL."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End it as an operator would."""
        self._end(signal.SIGTERM)

    def _answers(self) -> bool:
        if self._process is not None and self._process.poll() is not None:
            # The database was away when it looked: whoever supervises starts it again.
            self.start_again()
        try:
            return httpx.get(self._probe, timeout=5).status_code == 200
        except httpx.HTTPError:
            return False

    def start_again(self) -> None:
        """Start what has ended by itself, as a supervisor does."""
        if self._process is not None and self._process.poll() is not None:
            probe, self._probe = self._probe, ""
            self.start()
            self._probe = probe

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait()
            self._process = None


class Installation:
    """Two webs, two workers, beat, Postgres and Redis, each of them by name."""

    def __init__(
        self, postgres: PostgresServer, redis: redis_server.RedisServer, folder: Path
    ) -> None:
        self.database = postgres.create("studio")
        variables = {
            **{name: value for name, value in os.environ.items() if not name.startswith("MEMORY_")},
            "DATABASE_URL": self.database,
            "REDIS_URL": redis.url,
            "MEMORY_STUDIO_SECRET_KEY": secrets.token_urlsafe(50),
            "MEMORY_STUDIO_ENCRYPTION_KEY": urlsafe_b64encode(secrets.token_bytes(32)).decode(),
            "MEMORY_STUDIO_WORKER_THREADS": "2",
            "OMP_NUM_THREADS": "1",
        }
        self.webs: list[str] = []
        self.parts: dict[str, Killable] = {}
        for place in (1, 2):
            port = free_port()
            self.webs.append(f"http://127.0.0.1:{port}")
            command = (sys.executable, "manage.py", "studio", "--port", str(port))
            probe = f"{self.webs[-1]}/readyz"
            self.parts[f"web{place}"] = Process(command, folder / f"web{place}", variables, probe)
        for place in (1, 2):
            worker = (*WORKER, "--hostname", f"worker{place}@%h")
            home = folder / f"worker{place}"
            self.parts[f"worker{place}"] = Process(worker, home, variables)
        self.parts["beat"] = Process((*CELERY, "beat"), folder / "beat", variables)
        self.own = [part for part in self.parts.values() if isinstance(part, Process)]
        self.first_log = self.own[0].log
        self.parts |= {"postgres": postgres, "redis": redis}

    def start(self) -> None:
        """Start ours; the servers run already."""
        for part in self.own:
            part.start()

    def kill(self, name: str) -> float:
        """Kill one and start it again; seconds until it served."""
        began = time.perf_counter()
        part = self.parts[name]
        part.kill()
        part.start()
        return time.perf_counter() - began

    def supervise(self) -> None:
        """Start again what has ended by itself, as a supervisor does."""
        for part in self.own:
            part.start_again()

    def stop(self) -> None:
        """End ours."""
        for part in self.own:
            part.stop()


@contextmanager
def installation() -> Iterator[Installation]:
    """A running one, gone with all its data at the end."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="memory-studio-chaos-")))
        postgres = stack.enter_context(postgres_server.running(settings=KEEPS))
        redis = stack.enter_context(redis_server.running())
        made = Installation(postgres, redis, folder)
        stack.callback(made.stop)
        made.start()
        yield made


def wait_for(condition: Callable[[], bool], within_s: float, what: str) -> None:
    """Until it holds. Raises ``RuntimeError`` when the time is over."""
    until, pause = time.monotonic() + within_s, threading.Event()
    while not condition():
        if time.monotonic() > until:
            raise RuntimeError(f"waited {within_s:.0f} s for {what}")
        pause.wait(POLL_S)
