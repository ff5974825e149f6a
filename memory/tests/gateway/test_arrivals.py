"""What is done for a chat before its caller has been admitted anew, and what is not."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from django.db import connection

from memory.gateway.mount import Gateway
from memory.models import ApiKey
from memory.principal import SYSTEM, Principal
from memory.services import retrieval
from memory.services import settings as studio_settings
from memory.services.gateway.admission import admit
from memory.services.gateway.anticipation import anticipate
from memory.services.retrieval import RetrieveRequest
from memory.tests.conftest import Remember, Work
from memory.tests.gateway.asgi_client import call
from memory.tests.gateway.conftest import CHAT, World, user
from memory.tests.sources import RecordingEmbedding

pytestmark = pytest.mark.django_db(transaction=True)
TURN = "Which dark mode do I prefer?"


@pytest.fixture
def owner(world: World) -> Principal:
    """The key's owner, who may store and read."""
    return Principal("key", "app", frozenset({"read", "write"}), world.key.pk)


@pytest.fixture
def asked(
    world: World, owner: Principal, remember: Remember, work: Work, settings: Any
) -> list[str]:
    """The queries that the loaded model embedded; memory is on and holds one."""
    settings.MEMORY_LOCAL_SOURCES["multilingual-e5-small"] = "memory.tests.sources.recording"
    remember(owner, "I prefer dark mode")
    work()
    world.switch_on()
    RecordingEmbedding.queries.clear()
    return RecordingEmbedding.queries


def test_the_turn_of_a_known_caller_is_embedded_ahead_and_once(
    world: World, asked: list[str]
) -> None:
    assert anticipate(admit(world.secret), {}, user(TURN))
    assert asked == [TURN]
    world.say(CHAT, user(TURN))
    assert (asked, world.receipt().memory) == ([TURN], "injected")


def test_nothing_is_done_ahead_where_no_memory_will_be_asked(
    world: World, asked: list[str]
) -> None:
    admitted = admit(world.secret)
    assert not anticipate(admitted, {"x-memory-opt-out": "true"}, user(TURN))
    assert not anticipate(admitted, {}, user(""))
    studio_settings.update(SYSTEM, {"strategy": "recent"})
    assert not anticipate(admit(world.secret), {}, user(TURN))
    world.switch_on(injectionEnabled=False)
    assert not anticipate(admit(world.secret), {}, user(TURN))
    assert asked == []


def test_a_service_is_sent_nothing_before_the_caller_is_admitted(
    world: World, asked: list[str]
) -> None:
    endpoint = {"customBaseUrl": world.upstream.url, "customModelId": "small"}
    studio_settings.update(SYSTEM, endpoint)
    assert not anticipate(admit(world.secret), {}, user(TURN))
    assert (asked, world.upstream.requests) == ([], [])


def test_a_caller_who_was_known_and_is_revoked_is_told_so_before_anything_else(
    world: World, asked: list[str]
) -> None:
    def revoke() -> None:
        ApiKey.objects.filter(pk=world.key.pk).update(revoked_at=world.key.created_at)
        connection.close()

    async def ask(gateway: Gateway) -> list[int]:
        good, broken = world.asks(CHAT, user(TURN)), world.asks(CHAT, b"{")
        first = [(await call(gateway, one)).status for one in (good, broken)]
        await asyncio.to_thread(revoke)
        return [*first, *[(await call(gateway, one)).status for one in (broken, good)]]

    assert world.run(ask) == [200, 400, 401, 401]
    assert len(world.upstream.requests) == 1


def test_what_came_along_with_a_good_hit_is_not_put_in(
    world: World, owner: Principal, remember: Remember, work: Work
) -> None:
    """A search shows the neighbours of a good turn; a chat is given what is good by itself."""
    for text in ("I prefer dark mode", "Rain fell over Lyon"):
        remember(owner, text, session_id="s1")
    work()
    studio_settings.update(SYSTEM, {"relevanceFloor": 0.4})
    world.switch_on()
    view = retrieval.retrieve(owner, RetrieveRequest(TURN))
    shown = {memory.content for memory in view.memories.values()}
    answered = world.say(CHAT, user(TURN))
    assert shown == {"I prefer dark mode", "Rain fell over Lyon"}
    assert answered.headers["x-memory-injected"] == "1"
    assert "Lyon" not in world.upstream.requests[-1].body.decode()
