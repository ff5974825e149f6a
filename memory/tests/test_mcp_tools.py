"""The tools themselves: what they ask of the services and answer. Names carry the case ids."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from memory.errors import Forbidden, Invalid, NotFound
from memory.mcp import tools
from memory.mcp.errors import told
from memory.models import AuditEntry, Memory, Passage
from memory.principal import SYSTEM, Principal
from memory.services import clearing, memories, settings
from memory.services.backends import transfers
from memory.tests.backends import brain, configure
from memory.tests.conftest import Remember, Work


def call(principal: Principal, name: str, **arguments: Any) -> dict[str, Any]:
    """What a tool answers."""
    tool = tools.offered(with_seed_names=True)[name]
    given = tools.read_arguments(tool, arguments)
    answer = tool.run(tools.Call(principal, given, threading.Event()))
    return answer.model_dump(mode="json", by_alias=True, exclude_none=True)


def test_mcp_search_01_type_and_limit_narrow_the_search(
    alice: Principal, remember: Remember
) -> None:
    remember(alice, "The backend is Django")
    remember(alice, "Django serves the backend over WSGI")
    remember(alice, "Chose Django for the backend", type="episodic")
    found = call(alice, "memory_search", query="django backend", type="factual", limit=1)
    assert found["count"] == 1
    assert found["memories"][0]["type"] == "factual"


def test_mcp_search_02_a_budget_that_is_set_to_zero_gives_nothing(
    alice: Principal, remember: Remember
) -> None:
    remember(alice, "Likes tea")
    settings.update(SYSTEM, {"enabled": True, "maxTokens": 0})
    for asked in ({}, {"maxTokens": 500}):
        found = call(alice, "memory_search", query="tea", **asked)
        assert (found["count"], found["totalTokens"]) == (0, 0)
        assert found["emptyReason"] == "no_budget"


def test_mcp_search_03_it_works_while_memory_is_off_for_chats(
    alice: Principal, remember: Remember
) -> None:
    remember(alice, "Likes tea")
    settings.update(SYSTEM, {"enabled": False})
    assert call(alice, "memory_search", query="tea", maxTokens=500)["count"] == 1


@pytest.mark.parametrize("way", ["argument", "setting"])
def test_mcp_search_04_recent_means_exact(alice: Principal, remember: Remember, way: str) -> None:
    remember(alice, "Likes tea")
    remember(alice, "Plays chess")
    settings.update(SYSTEM, {"strategy": "recent" if way == "setting" else "hybrid"})
    asked = {"strategy": "recent"} if way == "argument" else {}
    found = call(alice, "memory_search", query="tea", **asked)
    assert [memory["content"] for memory in found["memories"]] == ["Likes tea"]
    assert found["strategyUsed"] == "exact"


def test_mcp_search_05_a_type_is_looked_for_before_the_budget_is_spent(
    alice: Principal, remember: Remember
) -> None:
    for number in range(20):
        remember(alice, f"tea house {number} " + "leaf " * 40)
    remember(alice, "tea is a plant", type="semantic")
    found = call(alice, "memory_search", query="tea", type="semantic", maxTokens=60)
    assert [memory["type"] for memory in found["memories"]] == ["semantic"]


def test_without_a_query_the_newest_come(alice: Principal, remember: Remember) -> None:
    for number in range(3):
        remember(alice, f"note {number}")
    found = call(alice, "memory_search", limit=2)
    assert [memory["content"] for memory in found["memories"]] == ["note 2", "note 1"]


def test_mcp_add_01_a_new_memory_has_the_defaults(alice: Principal) -> None:
    answer = call(alice, "omniroute_memory_add", type="factual", key="k", content="c")
    assert answer["success"] is True
    assert answer["data"]["message"] == "Memory created successfully"
    memory = answer["data"]["memory"]
    assert (memory["sessionId"], memory["metadata"]) == ("", {})


def test_a_known_key_is_updated(alice: Principal) -> None:
    call(alice, "memory_add", key="k", content="first")
    answer = call(alice, "memory_add", key="k", content="second")
    assert (answer["created"], answer["memory"]["revision"]) == (False, 2)


def test_mcp_clear_01_only_what_is_older_goes(alice: Principal, remember: Remember) -> None:
    for year, month in ((2024, 1), (2025, 6)):
        remember(alice, f"of {year}", created_at=datetime(year, month, 1, tzinfo=UTC))
    answer = call(alice, "memory_clear", type="factual", olderThan="2025-01-01")
    assert answer == {"deletedCount": 1, "message": "Cleared 1 memories"}
    assert list(Memory.objects.filter(trashed_at=None).values_list("content", flat=True)) == [
        "of 2025"
    ]


def test_mcp_clear_02_there_is_no_end_at_fifty(
    alice: Principal, bob: Principal, remember: Remember
) -> None:
    for number in range(60):
        remember(alice, f"note {number}")
    kept = remember(bob, "not of alice")
    assert call(alice, "memory_clear")["deletedCount"] == 60
    assert list(Memory.objects.filter(trashed_at=None)) == [kept]
    assert Passage.objects.count() == 1
    assert AuditEntry.objects.get(action="memory.clear").count == 60


def test_mcp_clear_03_a_time_that_is_none_is_refused(alice: Principal, remember: Remember) -> None:
    remember(alice, "note")
    with pytest.raises(ValidationError) as refused:
        call(alice, "memory_clear", olderThan="not a date")
    words = told(refused.value).message
    assert words.startswith("Arguments that cannot be used: olderThan: ")
    assert Memory.objects.filter(trashed_at=None).count() == 1


def test_clearing_stops_between_batches_when_nobody_waits(
    alice: Principal, remember: Remember
) -> None:
    remember(alice, "note")
    assert clearing.clear(alice, clearing.Wanted(), is_cancelled=lambda: True) == 0
    assert Memory.objects.filter(trashed_at=None).count() == 1


@pytest.mark.parametrize("primary", ["sqlite", "brain"])
def test_searching_and_clearing_reach_other_backends(
    alice: Principal, remember: Remember, work: Work, primary: str
) -> None:
    with brain() as running:
        configure(primary, ["brain"] if primary == "sqlite" else [], brain=running.config)
        remember(alice, "likes tea")
        if primary == "sqlite":
            transfers.start(SYSTEM, "copy", "brain")
        work()
        assert running.contents == ["likes tea"]
        found = call(alice, "memory_search", query="tea")
        assert (found["count"], found["strategyUsed"] == "backend") == (1, primary == "brain")
        assert call(alice, "memory_clear")["deletedCount"] == 1
        work()
        assert running.contents == []


def test_what_was_cleared_can_be_restored(alice: Principal, remember: Remember) -> None:
    memory = remember(alice, "likes tea")
    call(alice, "memory_clear")
    assert call(alice, "memory_search", query="tea")["count"] == 0
    memories.restore(alice, memory.pk)
    assert call(alice, "memory_search", query="tea")["count"] == 1


def test_a_null_counts_as_not_given_but_clears_a_time(alice: Principal) -> None:
    made = call(alice, "memory_add", key="k", content="c", expiresAt="2090-01-01", metadata=None)
    memory_id = made["memory"]["id"]
    changed = call(alice, "memory_update", id=memory_id, content=None, expiresAt=None)["memory"]
    assert changed["content"] == "c"
    assert "expiresAt" not in changed


def test_arguments_are_also_understood_in_snake_case(alice: Principal, remember: Remember) -> None:
    remember(alice, "likes tea")
    assert call(alice, "memory_search", query="tea", max_tokens=500)["count"] == 1


def test_reading_leaves_an_audit_row_without_text(alice: Principal, remember: Remember) -> None:
    memory = remember(alice, "likes tea")
    call(alice, "memory_read", id=str(memory.pk))
    assert AuditEntry.objects.get(action="memory.read").target_ids == [str(memory.pk)]


def test_a_manager_may_name_an_owner(
    alice: Principal, manager: Principal, remember: Remember
) -> None:
    remember(alice, "likes tea")
    assert call(manager, "memory_search", query="tea", apiKeyId="alice")["count"] == 1
    call(manager, "memory_add", key="k", content="c", apiKeyId="alice")
    assert call(manager, "memory_clear", apiKeyId="alice")["deletedCount"] == 2


def test_others_memories_are_out_of_reach(
    alice: Principal, bob: Principal, remember: Remember
) -> None:
    memory_id = str(remember(alice, "likes tea").pk)
    assert call(bob, "memory_search", query="tea", apiKeyId="alice")["count"] == 0
    for name in ("memory_read", "memory_update", "memory_delete"):
        with pytest.raises(NotFound):
            call(bob, name, id=memory_id)
    with pytest.raises(Forbidden):
        call(bob, "memory_clear", apiKeyId="alice")


def test_errors_are_plain_words() -> None:
    fields = {"session_id": "At most 200 characters."}
    words = told(Invalid("Some fields cannot be stored.", fields=fields))
    assert words.code == "invalid"
    assert words.message == "Some fields cannot be stored. sessionId: At most 200 characters."


def test_an_unforeseen_error_is_logged_and_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    words = told(RuntimeError("secret detail"))
    assert (words.code, "secret" in words.message) == ("internal", False)
    assert "secret detail" in caplog.text


def test_halves_of_characters_are_never_sent_back() -> None:
    tool = tools.offered(with_seed_names=False)["memory_read"]
    with pytest.raises(ValidationError) as refused:
        tools.read_arguments(tool, {"id": "x", "\ud800": 1})
    assert told(refused.value).message.encode()
