"""Requests that are answered beside Django are counted like the others."""

from __future__ import annotations

import asyncio

import pytest

from memory import measured
from memstudio.bridge import Message, Receive, Scope, Send
from memstudio.observed import Observed


async def _nothing() -> Message:
    return {"type": "http.disconnect"}


def _asked(status: int | None) -> list[Message]:
    """Ask an application that answers with a status, or breaks off; what it has sent."""
    sent: list[Message] = []

    async def answer(_scope: Scope, _receive: Receive, send: Send) -> None:
        if status is None:
            raise ConnectionResetError
        await send({"type": "http.response.start", "status": status})

    async def take(message: Message) -> None:
        sent.append(message)

    asyncio.run(Observed(answer, "/observed")({"method": "POST"}, _nothing, take))
    return sent


def test_an_answer_is_passed_on_and_counted() -> None:
    measured.clear()
    assert _asked(202) == [{"type": "http.response.start", "status": 202}]
    assert measured.REQUESTS.read() == {("POST", "/observed", "202"): 1}
    assert sum(measured.REQUEST_TIME.read()[("POST", "/observed")].counts) == 1


def test_a_request_that_breaks_off_is_counted_too() -> None:
    measured.clear()
    with pytest.raises(ConnectionResetError):
        _asked(None)
    assert measured.REQUESTS.read() == {("POST", "/observed", "499"): 1}
