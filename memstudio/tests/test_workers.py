"""Workers of their own over a real Redis: they are killed, stopped, and lose their broker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from engine.testing import redis_server
from engine.testing.redis_server import RedisServer
from memory.tests.own_stack import environment
from memory.tests.test_processes import Process
from memstudio.tests.worker_source import HELD, HOLD

DEADLINE_S = 60
POLL_S = 0.05
BATCHES = 3
COUNT = 16 * BATCHES
CELERY = (sys.executable, "-m", "celery", "--quiet", "--app", "memstudio.celery")
WORKER = ("worker", "--queues", "interactive,bulk", "--without-gossip", "--without-mingle")


class Stack:
    """A home, a Redis, a process that answers as the web does, and as many workers as asked for."""

    def __init__(self, home: Path, server: RedisServer, stack: ExitStack) -> None:
        self.home, self.server, self._stack = home, server, stack
        prepared = Process("prepare", home)
        stack.callback(prepared.end)
        assert prepared.process.wait(DEADLINE_S) == 0
        self.web = Process("web", home, REDIS_URL=server.url)
        stack.callback(self.web.end)
        assert self.web.answer() == "ready"

    def worker(self, *options: str) -> subprocess.Popen[str]:
        """Start one."""
        return self.start(*WORKER, *options)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a process of Celery."""
        process = subprocess.Popen(
            [*CELERY, *arguments],
            cwd=settings.BASE_DIR,
            env=environment(self.home)
            | {
                "DJANGO_SETTINGS_MODULE": "memstudio.tests.worker_settings",
                "REDIS_URL": self.server.url,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._stack.callback(_end, process)
        return process

    def store(self, name: str, count: int = COUNT) -> list[str]:
        """Store memories in one go; their texts."""
        texts = [f"{name} number{place}" for place in range(count)]
        assert len(self.web.ask("store", texts)) == count
        return texts

    def hold(self) -> None:
        """Whatever worker embeds now stops at its second batch."""
        (self.home / HELD).unlink(missing_ok=True)
        (self.home / HOLD).touch()

    def let_go(self) -> None:
        """Go on."""
        (self.home / HOLD).unlink()

    def is_held(self) -> bool:
        """Whether a worker waits in the middle of a job."""
        return (self.home / HELD).exists()

    def is_embedded(self) -> bool:
        """Whether every passage has its vector and no job is open."""
        states = {state for state, _attempts in self.web.ask("jobs", "reindex")}
        return self.web.ask("pending") == 0 and states <= {"succeeded"}

    def finds(self, name: str) -> list[str]:
        """What a search by vectors finds."""
        return sorted(text for text in self.web.ask("vector", name) if text.startswith(name))


def _end(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        process.kill()
    process.communicate(timeout=DEADLINE_S)


def wait_for(condition: Callable[[], bool], what: str) -> None:
    """Until it holds."""
    until, pause = time.monotonic() + DEADLINE_S, threading.Event()
    while not condition():
        assert time.monotonic() < until, f"{what} did not happen"
        pause.wait(POLL_S)


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    with ExitStack() as exits:
        server = exits.enter_context(redis_server.running())
        yield Stack(tmp_path, server, exits)


def test_a_killed_worker_loses_nothing_and_does_nothing_twice(stack: Stack) -> None:
    stack.hold()
    first = stack.worker()
    texts = stack.store("kettle")
    wait_for(stack.is_held, "the work of the first")
    stack.worker("--hostname", "second@%h")
    first.kill()
    first.wait(DEADLINE_S)
    stack.let_go()
    wait_for(stack.is_embedded, "the work of the second")
    assert stack.finds("kettle") == sorted(texts)
    assert stack.web.ask("jobs", "reindex")[0] == ["succeeded", 2]


def test_a_worker_that_is_stopped_hands_its_job_back_and_says_nothing(stack: Stack) -> None:
    stack.hold()
    first = stack.worker()
    texts = stack.store("kettle")
    wait_for(stack.is_held, "the work of the first")
    first.send_signal(signal.SIGTERM)
    stack.let_go()
    _out, said = first.communicate(timeout=DEADLINE_S)
    assert (first.returncode, said) == (0, "")
    stack.worker()
    wait_for(stack.is_embedded, "the work of the second")
    assert stack.finds("kettle") == sorted(texts)
    assert stack.web.ask("jobs", "reindex")[0] == ["succeeded", 1], "it was not lost, but given"


def test_while_the_broker_is_away_writes_go_on_and_their_jobs_run_later(stack: Stack) -> None:
    stack.worker()
    stack.start("beat")
    texts = stack.store("first", 4)
    wait_for(stack.is_embedded, "the first work")
    stack.server.kill()
    began = time.perf_counter()
    texts += stack.store("first again", 4)
    assert time.perf_counter() - began < 10
    assert stack.web.ask("keyword", "again")
    stack.server.start()
    wait_for(stack.is_embedded, "the work after the outage")
    assert stack.finds("first") == sorted(texts)


def test_a_worker_without_its_database_is_one_sentence(tmp_path: Path) -> None:
    variables: dict[str, Any] = {
        **os.environ,
        "MEMORY_STUDIO_HOME": str(tmp_path),
        "REDIS_URL": "redis://127.0.0.1:1/0",
        "DATABASE_URL": "postgres://user:word@127.0.0.1:1/name",
    }
    done = subprocess.run(
        [*CELERY, *WORKER],
        cwd=settings.BASE_DIR,
        env=variables,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("memory studio: The database name on 127.0.0.1:1 cannot be used")
    assert done.stderr.count("\n") == 1
