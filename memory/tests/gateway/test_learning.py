"""What is said in a chat is learnt after it, and arrives in the next one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memory import secretbox
from memory.models import Job, Memory, Trace
from memory.principal import SYSTEM
from memory.services.extraction import settings
from memory.tests.conftest import Work
from memory.tests.gateway.conftest import CHAT, World, user

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_preference_of_one_session_arrives_in_another(world: World, work: Work) -> None:
    world.switch_on()
    world.say(CHAT, user("I prefer dark mode in every editor."), x_session_id="one")
    work()
    (memory,) = Memory.objects.all()
    assert (memory.content, memory.session_id) == ("I prefer dark mode in every editor", "one")
    assert memory.api_key_id == world.key.pk
    world.say(CHAT, user("Which mode do I prefer in my editor?"), x_session_id="two")
    assert "I prefer dark mode" in str(world.upstream.last["messages"])
    receipt = Trace.objects.get(session_id="one")
    assert receipt.learnt == [str(memory.pk)]


def test_memory_that_is_off_learns_nothing(world: World, work: Work) -> None:
    world.say(CHAT, user("I prefer dark mode."))
    work()
    assert Memory.objects.count() == 0


def test_who_opts_out_is_not_learnt_from(world: World, work: Work) -> None:
    world.switch_on()
    world.say(CHAT, user("I prefer dark mode."), x_omniroute_no_memory="true")
    work()
    assert Memory.objects.count() == 0


def test_what_an_agent_puts_around_a_turn_is_not_learnt(world: World, work: Work) -> None:
    world.switch_on()
    reminder = "<system-reminder>\nI always use tabs.\n</system-reminder>"
    world.say(CHAT, user(f"{reminder}\nI prefer dark mode."))
    world.say(CHAT, user(reminder))
    work()
    assert [memory.content for memory in Memory.objects.all()] == ["I prefer dark mode"]


def test_a_turn_is_learnt_from_once_however_many_tools_are_called(world: World) -> None:
    world.switch_on()
    body = user("I prefer dark mode.")
    world.say(CHAT, body)
    assert Job.objects.filter(kind="extract").count() == 1
    call: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": []}
    body["messages"] += [call, {"role": "tool", "tool_call_id": "1", "content": "done"}]
    world.say(CHAT, body)
    assert Job.objects.filter(kind="extract").count() == 1


def test_replies_are_read_only_by_setting(world: World, work: Work) -> None:
    world.switch_on()
    assert _texts(world) == 1
    settings.update(SYSTEM, {"extractFromReplies": True})
    assert _texts(world) == 2


def _texts(world: World) -> int:
    """How many turns the job of one chat has."""
    Job.objects.filter(kind="extract").delete()
    world.say(CHAT, user("Hello."))
    sealed: Any = Job.objects.get(kind="extract").params["turns"]
    return len(json.loads(secretbox.open_sealed(sealed)))
