"""Turns become memories of their owner, once, with their session; behaviours of the first seed."""

from __future__ import annotations

import time
import uuid

import pytest

from engine.extract.facts import Speaker
from memory.errors import Forbidden
from memory.models import AuditEntry, InboxItem, Job, Memory, Trace
from memory.principal import SYSTEM, Principal
from memory.services import access, memories
from memory.services import settings as studio_settings
from memory.services.extraction import learning, settings, turns
from memory.services.extraction.learning import Outcome, Turn
from memory.tests.conftest import Work

pytestmark = pytest.mark.django_db(transaction=True)


def on() -> None:
    """Switch memory on."""
    studio_settings.update(SYSTEM, {"enabled": True})


def live(principal: Principal) -> dict[str, str]:
    """Contents of the memories of an owner, by key."""
    rows = Memory.objects.filter(api_key=principal.owner, trashed_at__isnull=True)
    return dict(rows.values_list("key", "content"))


def test_a_turn_becomes_memories_in_the_users_own_words(alice: Principal) -> None:
    learnt = learning.learn(alice, Turn("I prefer dark mode. I'll use Postgres.", session="s-1"))
    assert live(alice) == {
        "preference:dark_mode": "I prefer dark mode",
        "decision:postgres": "I'll use Postgres",
    }
    first = learnt.stored[0]
    assert (first.session_id, first.type) == ("s-1", "factual")
    assert first.metadata["object"] == "dark mode"
    assert {"category", "extractedAt", "source"} <= set(first.metadata)
    assert learnt.stored[1].type == "episodic"


def test_the_same_again_changes_nothing(alice: Principal) -> None:
    learning.learn(alice, Turn("I prefer dark mode."))
    again = learning.learn(alice, Turn("I prefer dark mode!"))
    assert [result.outcome for result in again.results] == [Outcome.KNOWN]
    assert Memory.objects.get().revision == 1


def test_a_changed_mind_takes_the_place_of_the_earlier_one(alice: Principal) -> None:
    learning.learn(alice, Turn("I like Java."))
    learning.learn(alice, Turn("I don't like Java."))
    memory = Memory.objects.get()
    assert memory.content == "I don't like Java"
    assert [row.content for row in memories.history(alice, memory.pk)] == ["I like Java"]


def test_keys_that_were_cut_alike_are_two_memories(alice: Principal) -> None:
    start = "I prefer to keep every commit message in plain English"
    learning.learn(alice, Turn(f"{start} because of reviewers."))
    learning.learn(alice, Turn(f"{start} because of my tools."))
    assert Memory.objects.count() == 2


def test_facts_of_another_owner_are_untouched(alice: Principal, bob: Principal) -> None:
    learning.learn(alice, Turn("My name is Ada."))
    learning.learn(bob, Turn("My name is Bob."))
    assert (live(alice), live(bob)) == (
        {"identity:name": "My name is Ada"},
        {"identity:name": "My name is Bob"},
    )


def test_an_ordinary_key_learns_for_nobody_else(alice: Principal, bob: Principal) -> None:
    with pytest.raises(Forbidden):
        learning.learn(alice, Turn("I like tea."), owner="bob")


def test_no_secret_is_stored_anywhere(alice: Principal) -> None:
    learning.learn(alice, Turn("My name is Ada and my password is hunter2-Blue. Call me Ada."))
    assert list(live(alice)) == ["identity:name"]
    held = [*Memory.objects.values(), *InboxItem.objects.values(), *AuditEntry.objects.values()]
    assert "hunter2" not in str(held)


def test_a_preview_stores_nothing(alice: Principal) -> None:
    learning.learn(alice, Turn("I like tea."))
    learnt = learning.preview(alice, Turn("I like tea. I like cocoa. Maybe I prefer milk."))
    outcomes = [result.outcome for result in learnt.results]
    assert outcomes == [Outcome.KNOWN, Outcome.STORED, Outcome.WAITING]
    assert Memory.objects.count() == 1
    assert InboxItem.objects.count() == 0


def test_extract_pipeline_01_without_an_owner_nothing_happens(first_start: None) -> None:
    on()
    assert turns.learn_soon(None, [Turn("I prefer nano.")]) is None
    assert Job.objects.count() == 0


def test_extract_pipeline_02_a_session_is_optional(alice: Principal, work: Work) -> None:
    on()
    turns.learn_soon(access.find("alice"), [Turn("I prefer nano.", session="")])
    work()
    assert live(alice) == {"preference:nano": "I prefer nano"}


def test_extract_pipeline_03_a_chat_does_not_wait(alice: Principal) -> None:
    on()
    owner, turn = access.find("alice"), Turn("I prefer nano. " * 4000)
    turns.learn_soon(owner, [turn])
    began = time.perf_counter()
    turns.learn_soon(owner, [turn])
    assert time.perf_counter() - began < 0.5, "a busy machine is slow; alone it takes 5 ms"
    assert live(alice) == {}


def test_extract_pipeline_04_memory_that_is_off_learns_nothing(
    alice: Principal, work: Work
) -> None:
    assert turns.learn_soon(access.find("alice"), [Turn("I prefer nano.")]) is None
    on()
    turns.learn_soon(access.find("alice"), [Turn("I prefer nano.")])
    studio_settings.update(SYSTEM, {"enabled": False})
    work()
    assert live(alice) == {}


def test_extraction_has_a_switch_of_its_own(alice: Principal) -> None:
    on()
    settings.update(SYSTEM, {"extractionEnabled": False})
    assert turns.learn_soon(access.find("alice"), [Turn("I prefer nano.")]) is None


def test_extract_pipeline_06_each_memory_carries_its_own_session(
    alice: Principal, work: Work
) -> None:
    on()
    owner = access.find("alice")
    turns.learn_soon(owner, [Turn("I like tea.", session="one")])
    turns.learn_soon(owner, [Turn("I like coffee.", session="two")])
    work()
    assert dict(Memory.objects.values_list("content", "session_id")) == {
        "I like tea": "one",
        "I like coffee": "two",
    }


def test_extract_pipeline_09_a_blank_turn_learns_nothing(alice: Principal) -> None:
    on()
    assert turns.learn_soon(access.find("alice"), [Turn("  \n")]) is None


def test_what_was_said_is_sealed_in_the_job_and_wiped_after_it(
    alice: Principal, work: Work
) -> None:
    on()
    job = turns.learn_soon(access.find("alice"), [Turn("I prefer nano.")])
    assert job is not None
    assert "nano" not in str(Job.objects.values().get())
    work()
    job.refresh_from_db()
    assert (job.state, job.params) == ("succeeded", {})
    assert job.result == {"stored": 1, "waiting": 0}


def test_a_receipt_is_told_what_was_learnt(alice: Principal, work: Work) -> None:
    on()
    owner = access.find("alice")
    trace = Trace.objects.create(owner=owner, at=owner.created_at)
    turns.learn_soon(owner, [Turn("I like tea.", trace_id=trace.pk)])
    turns.learn_soon(owner, [Turn("I like milk.", trace_id=uuid.uuid4())])
    work()
    trace.refresh_from_db()
    assert trace.learnt == [str(Memory.objects.get(content="I like tea").pk)]


def test_nothing_is_learnt_from_what_was_injected(alice: Principal, work: Work) -> None:
    on()
    said = Turn(
        "You prefer dark mode, as your notes say.",
        speaker=Speaker.ASSISTANT,
        injected=["I prefer dark mode"],
    )
    turns.learn_soon(access.find("alice"), [said])
    work()
    assert Memory.objects.count() == InboxItem.objects.count() == 0


def test_what_an_assistant_says_waits_for_somebody(alice: Principal) -> None:
    learnt = learning.learn(alice, Turn("Noted: you prefer light mode.", Speaker.ASSISTANT))
    assert [item.content for item in learnt.waiting] == ["you prefer light mode"]


def test_learning_leaves_one_audit_row_without_text(alice: Principal) -> None:
    learning.learn(alice, Turn("I prefer dark mode. I like tea."))
    row = AuditEntry.objects.get(action="memory.extract")
    assert (row.count, row.detail) == (2, {"waiting": 0, "source": "rules"})
    assert not AuditEntry.objects.filter(action="memory.create").exists()
