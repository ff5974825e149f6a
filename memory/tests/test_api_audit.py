"""``/api/audit``: who did what, for those who may know."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from memory.models import ApiKey, AuditEntry
from memory.tests.rest import refusal


@pytest.fixture
def alice(api: Any) -> Any:
    """A client of an ordinary key, with an empty audit."""
    made = api("alice")
    api("bob")
    AuditEntry.objects.all().delete()
    return made


def _row(action: str, owner: str | None, day: int, actor: str = "") -> AuditEntry:
    key = ApiKey.objects.get(name=owner) if owner else None
    return AuditEntry.objects.create(
        at=datetime(2026, 1, day, tzinfo=UTC),
        actor=actor or f"key:{owner}",
        action=action,
        owner=key,
        target_ids=["x"],
        count=1,
    )


def _actions(client: Any, **query: Any) -> list[str]:
    response = client.call("GET", "/api/audit", **query)
    assert response.status_code == 200, response.content
    return [row["action"] for row in response.json()["data"]]


def test_a_key_sees_what_was_done_to_its_own_memories(alice: Any) -> None:
    _row("memory.create", "alice", 1)
    _row("memory.update", "alice", 2, actor="studio:grace")
    _row("memory.create", "bob", 3)
    _row("settings.update", None, 4, actor="studio:grace")
    answer = alice.call("GET", "/api/audit", apiKeyId="bob").json()
    assert [(row["action"], row["actor"]) for row in answer["data"]] == [
        ("memory.update", "studio"),
        ("memory.create", "key:alice"),
    ]
    assert {row["apiKeyName"] for row in answer["data"]} == {"alice"}
    assert (answer["total"], answer["page"], answer["limit"], answer["totalPages"]) == (2, 1, 50, 1)


def test_a_manager_sees_every_row_and_may_name_an_owner(alice: Any, api: Any) -> None:
    manager = api("manager", "read", "manage")
    AuditEntry.objects.all().delete()
    _row("memory.create", "alice", 1)
    _row("memory.delete", "bob", 2)
    _row("settings.update", None, 3, actor="studio:grace")
    every = manager.call("GET", "/api/audit").json()["data"]
    assert [row["actor"] for row in every] == ["studio:grace", "key:bob", "key:alice"]
    assert every[0]["apiKeyId"] is None
    assert _actions(manager, apiKeyId="bob") == ["memory.delete"]
    refusal(manager.call("GET", "/api/audit", apiKeyId="nobody"), 404, "not_found")


def test_rows_are_filtered_by_action_and_time(alice: Any) -> None:
    for day, action in enumerate(("memory.create", "memory.update", "memo", "retrieve.client"), 1):
        _row(action, "alice", day)
    assert _actions(alice, action="memory") == ["memory.update", "memory.create"]
    assert _actions(alice, action="memory.create") == ["memory.create"]
    assert _actions(alice, action="mem") == []
    assert _actions(alice, since="2026-01-02", until="2026-01-04T00:00:00Z") == [
        "memo",
        "memory.update",
    ]


def test_pages_do_not_overlap_and_a_page_beyond_the_end_is_empty(alice: Any) -> None:
    for place in range(5):
        _row(f"act.{place}", "alice", 1)
    pages = [_actions(alice, limit=2, page=page) for page in (1, 2, 3, 4)]
    assert pages == [["act.4", "act.3"], ["act.2", "act.1"], ["act.0"], []]
    for query in ({"limit": 0}, {"limit": 201}, {"page": 0}, {"since": "soon"}):
        refusal(alice.call("GET", "/api/audit", **query), 422, "invalid")


def test_no_text_of_a_memory_is_in_the_audit(alice: Any) -> None:
    body = {"content": "a secret sentence", "key": "a secret key", "sessionId": "a secret session"}
    created = alice.call("POST", "/api/memory", body).json()
    alice.call("PUT", f"/api/memory/{created['id']}", {"content": "another secret"})
    alice.call("POST", "/api/memory/retrieve-preview", {"query": "secret"})
    answer = alice.call("GET", "/api/audit").json()
    assert {row["action"] for row in answer["data"]} >= {"memory.create", "memory.update"}
    assert all(row["targetIds"] == [created["id"]] for row in answer["data"])
    assert "secret" not in json.dumps(answer)
