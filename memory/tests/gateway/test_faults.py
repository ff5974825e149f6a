"""Upstreams that hang, die, talk nonsense or talk too much, and clients that leave."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from engine.testing.fake_upstream import Reply
from memory.gateway.mount import Gateway
from memory.models import Trace
from memory.tests.gateway.asgi_client import Answered, call
from memory.tests.gateway.conftest import CHAT, World, user

pytestmark = pytest.mark.django_db(transaction=True)

EVENTS = [b'data: {"choices":[]}\n\n'] * 3
TYPE = {"Content-Type": "text/event-stream"}


def last_event(answered: Answered) -> Any:
    """The data of the last event."""
    return json.loads(answered.body.rsplit(b"data: ", 1)[1])


@pytest.mark.parametrize("path", [CHAT, "/v1/messages"])
def test_a_stream_that_dies_ends_with_an_error_of_the_protocol(world: World, path: str) -> None:
    world.upstream.script = [Reply(pieces=EVENTS, headers=TYPE, dies_after=2)]
    answered = world.say(path, {**user("hi"), "model": "lab/small", "stream": True})
    assert (answered.status, answered.is_whole) == (200, True)
    assert answered.body.startswith(b"".join(EVENTS[:2]))
    event = last_event(answered)
    assert event["error"]["message"].startswith("The provider “lab”")
    assert (b"event: error\n" in answered.body) == (event.get("type") == "error")
    assert (event.get("type") == "error") == (path == "/v1/messages")
    assert (world.receipt().outcome, world.receipt().status) == ("broken", 200)


def test_an_answer_that_dies_is_cut_and_never_looks_whole(world: World) -> None:
    for reply in (Reply(pieces=EVENTS, dies_after=1), Reply(body=b'{"a": 1}', dies_after=0)):
        world.upstream.script = [reply]
        answered = world.say(CHAT, user("hi"))
        assert (answered.status, answered.is_whole) == (200, False)
    assert set(Trace.objects.values_list("outcome", flat=True)) == {"broken"}


@pytest.mark.parametrize("after", [-1, 1])
def test_an_upstream_that_hangs_is_given_up_after_the_time_that_is_set(
    world: World, after: int
) -> None:
    world.switch_on(upstreamIdleSeconds=1)
    world.upstream.script = [Reply(pieces=EVENTS, headers=TYPE, hangs_after=after)]
    answered = world.say(CHAT, user("hi", stream=True))
    told = answered.error if after < 0 else last_event(answered)["error"]
    assert told["code"] == "upstream_timeout"
    assert answered.status == (504 if after < 0 else 200)
    assert world.receipt().outcome == ("unreached" if after < 0 else "broken")


def test_events_that_are_none_pass_through_as_they_are(world: World) -> None:
    world.switch_on(traceText=True)
    pieces = [b"data: {broken\n\n", b"\xff\xfe\x00", b"event: x\ndata: [1,2]\n\nda", b"ta: [DONE]"]
    world.upstream.script = [Reply(pieces=pieces, headers=TYPE)]
    answered = world.say(CHAT, user("hi", stream=True))
    assert (answered.pieces, answered.is_whole) == (pieces, True)
    assert world.receipt().outcome == "ok"


def test_twenty_megabytes_pass_both_ways(world: World) -> None:
    world.switch_on(traceText=True)
    large = "x" * 20_000_000
    body = json.dumps({"choices": [{"message": {"content": large}}]}).encode()
    world.upstream.script = [Reply(body=body)]
    answered = world.say(CHAT, user(large))
    assert len(world.upstream.requests[0].body) > 20_000_000
    assert (answered.body == body, answered.is_whole) == (True, True)
    assert answered.headers["content-length"] == str(len(body))


@pytest.mark.parametrize("after", [-1, 1])
def test_a_client_that_leaves_takes_the_upstream_along(world: World, after: int) -> None:
    world.upstream.script = [Reply(pieces=EVENTS, headers=TYPE, hangs_after=after)]

    async def leave(gateway: Gateway) -> Answered:
        left = asyncio.Event()
        wanted = world.asks(CHAT, user("hi", stream=True))
        going = asyncio.ensure_future(call(gateway, wanted, left))
        while not world.upstream.open_streams or (after > 0 and not world.upstream.requests):
            await asyncio.sleep(0)
        left.set()
        return await going

    answered = world.run(leave)
    assert not answered.is_whole
    assert world.upstream.left.wait(10)
    assert world.receipt().outcome == "left"


def test_a_client_that_leaves_before_the_head_takes_the_upstream_along(world: World) -> None:
    world.upstream.script = [Reply(pieces=EVENTS, headers=TYPE, hangs_after=1)]
    wanted = replace(world.asks(CHAT, user("hi", stream=True)), stalls=True)

    async def leave(gateway: Gateway) -> tuple[Answered, bool]:
        answered = await call(gateway, wanted)
        # Before the gateway stops, which closes every connection.
        return answered, await asyncio.to_thread(world.upstream.left.wait, 5)

    answered, has_left = world.run(leave)
    assert (answered.status, answered.is_whole, has_left) == (0, False, True)
    assert world.receipt().outcome == "left"


def test_many_streams_are_open_at_once_without_a_thread_each(world: World) -> None:
    reply = Reply(pieces=EVENTS, headers=TYPE, hangs_after=1)
    world.upstream.respond = lambda _request: reply

    async def all_at_once(gateway: Gateway) -> list[Answered]:
        wanted = world.asks(CHAT, user("hi", stream=True))
        going = [asyncio.ensure_future(call(gateway, wanted)) for _ in range(100)]
        while world.upstream.open_streams < 100:
            await asyncio.sleep(0.001)
        world.upstream.release()
        return await asyncio.gather(*going)

    answers = world.run(all_at_once)
    assert {(one.status, one.body, one.is_whole) for one in answers} == {
        (200, b"".join(EVENTS), True)
    }
    assert Trace.objects.count() == 100
