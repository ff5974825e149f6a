"""Two web processes and a worker on one home: each sees what the others wrote within a second."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from memory.tests.own_stack import environment

WITHIN_S = 1.0
DEADLINE_S = 60
AT_ONCE = 30


class Process:
    """One process of the three. Its answers are lines of JSON."""

    def __init__(self, role: str, home: Path, **variables: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "memory.tests.together", role],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=home,
            env={**environment(home), **variables},
        )

    def send(self, step: str, *arguments: Any) -> None:
        """Start a step without waiting for its answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([step, *arguments]) + "\n")
        self.process.stdin.flush()

    def answer(self) -> Any:
        """The next line it says."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the process has ended"
        return json.loads(line)

    def ask(self, step: str, *arguments: Any) -> Any:
        """A step and its answer."""
        self.send(step, *arguments)
        return self.answer()

    def end(self) -> None:
        """Its input ends, and so does it."""
        self.process.communicate(timeout=DEADLINE_S)


class Together:
    """The three, and the tests' way to wait for what one of them should see."""

    def __init__(self, start: Callable[[str], Process]) -> None:
        self.first, self.second, self.worker = start("web"), start("web"), start("worker")
        for process in (self.first, self.second, self.worker):
            assert process.answer() == "ready"
        for web in (self.first, self.second):
            # What is loaded on first use is loaded before anything is timed.
            assert web.ask("hybrid", "warm up") == []

    def embed(self) -> None:
        """Wait until the worker has given a vector to everything that waits for one."""
        until = time.monotonic() + DEADLINE_S
        while self.first.ask("pending"):
            assert time.monotonic() < until, "the worker does not work"


def sees(web: Process, step: str, query: str, expected: list[str]) -> bool:
    """Whether every search that begins more than a second from now finds just this."""
    written = time.monotonic()
    while True:
        began = time.monotonic()
        if sorted(web.ask(step, query)) == sorted(expected):
            return True
        if began - written > WITHIN_S:
            return False


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Together]:
    """Three processes on a home of their own."""
    home = tmp_path_factory.mktemp("home")
    with ExitStack() as stack:

        def start(role: str) -> Process:
            process = Process(role, home)
            stack.callback(process.end)
            return process

        prepared = start("prepare")
        assert prepared.process.wait(DEADLINE_S) == 0
        yield Together(start)


def test_what_one_process_writes_the_others_find_at_once(together: Together) -> None:
    first, second = together.first, together.second
    (memory,) = first.ask("store", ["Ana drinks oolong"])
    assert sees(second, "keyword", "oolong", ["Ana drinks oolong"])
    together.embed()
    for web in (first, second):
        assert sees(web, "vector", "oolong", ["Ana drinks oolong"])
    second.ask("edit", memory, "Ana drinks sencha")
    assert sees(first, "keyword", "oolong", [])
    assert sees(first, "keyword", "sencha", ["Ana drinks sencha"])
    together.embed()
    for web in (first, second):
        assert sees(web, "vector", "sencha", ["Ana drinks sencha"])
    first.ask("delete", memory)
    for step in ("keyword", "vector", "hybrid"):
        assert sees(second, step, "sencha", [])


def test_writers_at_the_same_time_lose_nothing(together: Together) -> None:
    first, second = together.first, together.second
    ours = [f"kettle number{place} of the first" for place in range(AT_ONCE)]
    theirs = [f"kettle number{place} of the second" for place in range(AT_ONCE)]
    first.send("store", ours)
    second.send("store", theirs)
    assert (len(first.answer()), len(second.answer())) == (AT_ONCE, AT_ONCE)
    together.embed()
    for web in (first, second):
        for step in ("keyword", "vector", "hybrid"):
            assert sees(web, step, "kettle", [*ours, *theirs])
