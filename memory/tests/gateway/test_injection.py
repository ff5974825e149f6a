"""Memories in chats: when they are put in, when not, and that they never stand in the way."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from queue import Queue
from typing import Any

import pytest
from django.db import DatabaseError

from engine.chat.block import HEAD
from memory.gateway.mount import Gateway
from memory.models import ApiKey, AuditEntry, InjectionDay, MemoryUse, RetrievalCount
from memory.principal import SYSTEM, Principal
from memory.services import settings
from memory.services.gateway.admission import Admission, admit
from memory.services.gateway.planning import Plan, plan
from memory.services.vaults import assets
from memory.services.vaults.assets import AssetDraft
from memory.tests.conftest import Remember, Work
from memory.tests.gateway.asgi_client import Answered, call
from memory.tests.gateway.conftest import CHAT, World, user
from memory.tests.vaults import opened

pytestmark = pytest.mark.django_db(transaction=True)
DARK = "I prefer dark mode"
ASKED = "Which dark mode do I prefer?"


@pytest.fixture
def knowing(world: World, remember: Remember, work: Work) -> World:
    """A key with one memory, and memory switched on."""
    _store(world, remember, DARK)
    work()
    world.switch_on()
    return world


def _store(world: World, remember: Remember, text: str, **fields: Any) -> str:
    owner = ApiKey.objects.get(pk=world.key.pk)
    writer = Principal("key", owner.name, frozenset({"read", "write"}), owner.pk)
    return str(remember(writer, text, **fields).pk)


def sent(world: World) -> str:
    """The last request upstream, as text."""
    return world.upstream.requests[-1].body.decode()


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (CHAT, user(ASKED)),
        (CHAT, user(ASKED, stream=True)),
        ("/v1/responses", {"model": "small", "input": ASKED}),
        ("/v1/messages", {**user(ASKED), "model": "lab/small", "max_tokens": 5}),
    ],
)
def test_extract_pipeline_08_a_memory_arrives_upstream(
    knowing: World, path: str, body: dict[str, Any]
) -> None:
    answered = knowing.say(path, body)
    assert DARK in sent(knowing) and HEAD.splitlines()[0] in sent(knowing)
    assert answered.headers["x-memory-injected"] == "1"
    receipt = knowing.receipt()
    assert answered.headers["x-memory-trace-id"] == str(receipt.pk)
    assert answered.headers["x-memory-tokens"] == str(receipt.tokens) != "0"
    assert (receipt.memory, receipt.injected) == ("injected", [receipt.retrieved[0]["id"]])


def test_the_first_systems_style_can_be_chosen(knowing: World) -> None:
    knowing.switch_on(injectionStyle="classic")
    knowing.say(CHAT, user(ASKED))
    first = knowing.upstream.last["messages"][0]
    assert first == {"role": "system", "content": f"Memory context: {DARK}"}


def test_extract_pipeline_07_with_nothing_relevant_bytes_pass_unchanged(world: World) -> None:
    world.switch_on()
    answered = world.say(CHAT, b'{"model": "small",  "messages": [{"role":"user","content":"hi"}]}')
    assert sent(world).startswith('{"model": "small",  ')
    assert answered.headers["x-memory-injected"] == "0"
    assert world.receipt().memory == "none"


@pytest.mark.parametrize(
    ("change", "headers", "state"),
    [
        ({}, {"x_omniroute_no_memory": "yes"}, "opted_out"),
        ({}, {"x_memory_opt_out": "1"}, "opted_out"),
        ({"injectionEnabled": False}, {}, "off"),
        ({"injectionScope": "session"}, {}, "no_session"),
        ({"injectionScope": "session"}, {"x_session_id": "other"}, "none"),
    ],
)
def test_memory_stays_out_where_it_is_not_wanted(
    knowing: World, change: dict[str, Any], headers: dict[str, str], state: str
) -> None:
    knowing.switch_on(**change)
    answered = knowing.say(CHAT, user(ASKED), **headers)
    assert DARK not in sent(knowing)
    assert (answered.headers["x-memory-tokens"], knowing.receipt().memory) == ("0", state)


def test_extract_pipeline_04_memory_is_off_until_it_is_switched_on(
    world: World, remember: Remember
) -> None:
    _store(world, remember, DARK)
    world.say(CHAT, user(ASKED))
    assert DARK not in sent(world)
    assert world.receipt().memory == "off"


@pytest.mark.parametrize(("own", "general", "is_in"), [("on", False, True), ("off", True, False)])
def test_a_key_may_say_otherwise(knowing: World, own: str, general: bool, is_in: bool) -> None:
    ApiKey.objects.filter(pk=knowing.key.pk).update(injection=own)
    knowing.switch_on(injectionEnabled=general)
    knowing.say(CHAT, user(ASKED))
    assert (DARK in sent(knowing)) is is_in


def test_the_session_scope_has_that_sessions_memories_only(
    world: World, remember: Remember, work: Work
) -> None:
    _store(world, remember, DARK, session_id="s1")
    _store(world, remember, "I prefer dark chocolate mode", key="c", session_id="s2")
    work()
    world.switch_on(injectionScope="session")
    world.say(CHAT, user(ASKED, user="s1"))
    assert DARK in sent(world) and "chocolate" not in sent(world)
    assert world.receipt().session_id == "s1"


def test_another_owners_memories_never_arrive(
    world: World, remember: Remember, work: Work, alice: Principal
) -> None:
    remember(alice, DARK)
    work()
    world.switch_on(injectionScope="global")
    world.say(CHAT, user(ASKED))
    assert DARK not in sent(world)


def test_a_long_turn_is_shortened_rather_than_refused(knowing: World) -> None:
    knowing.say(CHAT, user(f"{'padding ' * 4000} {ASKED}"))
    assert knowing.receipt().memory == "injected"


@pytest.mark.parametrize("mark", ["\0", "\ud800"])
def test_a_turn_that_no_database_holds_is_looked_for_all_the_same(
    knowing: World, mark: str
) -> None:
    body = json.dumps(user(f"{ASKED} {mark}")).encode()
    assert knowing.say(CHAT, body).status == 200
    assert knowing.receipt().memory == "injected"


def test_the_budget_holds_for_the_whole_block(world: World, remember: Remember, work: Work) -> None:
    for number in range(20):
        _store(world, remember, f"dark mode number {number} " + "and more " * 10, key=f"k{number}")
    work()
    world.switch_on()
    settings.update(SYSTEM, {"maxTokens": 150})
    answered = world.say(CHAT, user("dark mode"))
    assert 1 <= int(answered.headers["x-memory-injected"]) < 5
    assert 0 < int(answered.headers["x-memory-tokens"]) <= 150


def test_uses_answers_and_the_audit_are_counted_after_the_chat(knowing: World) -> None:
    answered = knowing.say(CHAT, user(ASKED))
    assert MemoryUse.objects.get().access_count == 1
    assert RetrievalCount.objects.get().answered == 1
    assert AuditEntry.objects.get(action="retrieve.client").count == 1
    day = InjectionDay.objects.get()
    assert (day.chats, day.injected, day.failures) == (1, 1, 0)
    assert str(day.tokens) == answered.headers["x-memory-tokens"]
    knowing.key.refresh_from_db()
    assert knowing.key.last_used_at is not None


def test_memory_that_fails_does_not_fail_the_chat(
    knowing: World, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_args: Any, **_options: Any) -> Plan:
        raise DatabaseError("the disk is on fire")

    wanted = knowing.asks(CHAT, user(ASKED))
    with caplog.at_level(logging.ERROR, "memory.injection"):
        answered = knowing.run(lambda gateway: call(gateway, wanted), planner=broken)
    assert (answered.status, answered.headers["x-memory-injected"]) == (200, "0")
    assert knowing.receipt().memory == "failed"
    assert InjectionDay.objects.get().failures == 1
    assert "memory.injection.failed" in caplog.text


def test_memory_that_is_late_does_not_hold_the_chat_up(knowing: World) -> None:
    held = threading.Event()
    planned: Queue[str] = Queue()

    def slow(*args: Any, **options: Any) -> Plan:
        held.wait(20)
        made = plan(*args, **options)
        planned.put(made.state.value)
        return made

    async def ask(gateway: Gateway) -> Answered:
        try:
            return await call(gateway, knowing.asks(CHAT, user(ASKED)))
        finally:
            held.set()
            assert await asyncio.to_thread(planned.get, timeout=20) == "late"

    knowing.switch_on(injectionBudgetMs=20)
    ApiKey.objects.filter(pk=knowing.key.pk).update(daily_tokens=10_000)
    answered = knowing.run(ask, planner=slow)
    assert (answered.status, answered.headers["x-memory-injected"]) == (200, "0")
    assert knowing.receipt().memory == "late"
    assert InjectionDay.objects.get().tokens == 0


@pytest.mark.parametrize(("grace_s", "status"), [(300.0, 200), (0.0, 503)])
def test_a_known_key_chats_on_for_a_while_when_the_database_fails(
    world: World, grace_s: float, status: int
) -> None:
    is_broken = False

    def admit_or_fail(secret: str) -> Admission:
        if is_broken:
            raise DatabaseError
        return admit(secret)

    async def ask(gateway: Gateway) -> list[int]:
        nonlocal is_broken
        wanted = world.asks(CHAT, user("hi"))
        stranger = world.asks(CHAT, user("hi"), authorization="Bearer ms_x")
        first = await call(gateway, wanted)
        is_broken = True
        return [first.status, *[(await call(gateway, one)).status for one in (wanted, stranger)]]

    found = world.run(ask, admit=admit_or_fail, grace_s=grace_s)
    assert found == [200, status, 503]


def test_what_lies_in_a_vault_is_never_put_in(knowing: World, work: Work) -> None:
    owner = ApiKey.objects.get(pk=knowing.key.pk)
    writer = Principal("key", owner.name, frozenset({"read", "write"}), owner.pk)
    vault = opened(writer)
    assets.put(writer, str(vault.uid), AssetDraft("I prefer dark mode in my vault.", "dark mode"))
    work()
    for scope in ("apiKey", "global"):
        knowing.switch_on(injectionScope=scope)
        knowing.say(CHAT, user(ASKED))
        assert DARK in sent(knowing) and "in my vault" not in sent(knowing)
