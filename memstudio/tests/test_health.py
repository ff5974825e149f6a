"""What probes are told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from django.db import connection

from memstudio import health
from memstudio.bridge import AsgiApplication, Message

Answer = tuple[int, bytes]


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def ask(application: AsgiApplication, method: str = "GET") -> Answer:
    """Status and body of one probe."""
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request"}

    async def send(message: Message) -> None:
        sent.append(message)

    await application({"type": "http", "method": method}, receive, send)
    return sent[0]["status"], sent[1]["body"]


def counted(*answers: bool | Exception) -> tuple[Callable[[], bool], list[int]]:
    """A check that answers in turn, and how often it was asked."""
    left, asked = list(answers), [0]

    def check() -> bool:
        asked[0] += 1
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return check, asked


def test_a_living_process_says_so() -> None:
    assert asyncio.run(ask(health.alive)) == (200, b"ok\n")
    assert asyncio.run(ask(health.alive, "HEAD")) == (200, b"")


def test_what_is_wrong_is_told_nobody() -> None:
    check, _asked = counted(OSError("connection to 10.0.0.1 with password word"), False, True)
    clock = Clock()
    ready = health.Ready(check, clock)

    async def probes() -> list[Answer]:
        answers = []
        for _ in range(3):
            answers.append(await ask(ready))
            clock.now += health.KEPT_S
        return answers

    down = (503, b"not ready\n")
    assert asyncio.run(probes()) == [down, down, (200, b"ok\n")]


def test_a_flood_of_probes_asks_the_database_once() -> None:
    check, asked = counted(True)
    ready = health.Ready(check, Clock())

    async def flood() -> list[Answer]:
        return await asyncio.gather(*(ask(ready) for _ in range(50)))

    assert asyncio.run(flood()) == [(200, b"ok\n")] * 50
    assert asked == [1]


@pytest.mark.django_db(transaction=True)
def test_a_database_with_every_migration_is_ready() -> None:
    connection.close()
    assert health.database_is_ready()
    assert connection.connection is None, "and the probe's connection is gone"
