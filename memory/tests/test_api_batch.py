"""``/api/memory/batch``: many changes, each with its own result."""

from __future__ import annotations

from typing import Any

import pytest

from memory.models import AuditEntry, Memory, Passage
from memory.tests.rest import MISSING, refusal


@pytest.fixture
def alice(api: Any) -> Any:
    """A client of an ordinary key."""
    return api("alice")


def _batch(client: Any, *items: Any) -> dict[str, Any]:
    response = client.call("POST", "/api/memory/batch", {"items": list(items)})
    assert response.status_code == 200, response.content
    answer: dict[str, Any] = response.json()
    return answer


def _new(content: str, key: str, **fields: Any) -> dict[str, Any]:
    return {"op": "create", "memory": {"content": content, "key": key, **fields}}


def _told(answer: dict[str, Any]) -> list[tuple[str, int]]:
    return [(item["result"], item["status"]) for item in answer["results"]]


def test_items_are_carried_out_in_order_and_answer_in_order(alice: Any) -> None:
    first = _batch(alice, _new("tea", "drink"), _new("green", "colour"))
    drink, colour = (item["id"] for item in first["results"])
    answer = _batch(
        alice,
        {"op": "update", "id": drink, "changes": {"content": "cocoa", "pinned": True}},
        _new("chess", "game", metadata={"a": 1}),
        _new("go", "game", metadata={"b": 2}),
        {"op": "delete", "id": colour},
        {"op": "delete", "id": drink, "purge": True},
    )
    assert (answer["success"], answer["succeeded"], answer["failed"]) == (True, 5, 0)
    assert [name for name, _status in _told(answer)] == [
        "updated",
        "created",
        "updated",
        "deleted",
        "purged",
    ]
    assert [item["index"] for item in answer["results"]] == [0, 1, 2, 3, 4]
    game = Memory.objects.get(key="game")
    assert (game.content, game.metadata) == ("go", {"a": 1, "b": 2})
    assert not Memory.objects.filter(pk=drink).exists()
    assert Memory.objects.get(pk=colour).trashed_at is not None
    assert list(Passage.objects.values_list("memory", flat=True)) == [game.pk]


def test_an_item_that_is_refused_leaves_the_others(alice: Any) -> None:
    kept = _batch(alice, _new("tea", "drink"), _new("green", "colour"))["results"][0]["id"]
    answer = _batch(
        alice,
        _new("one", "a"),
        {"op": "update", "id": kept, "changes": {"key": "colour"}},
        {"op": "update", "id": kept, "changes": {"content": "x"}, "surprise": 1},
        {"op": "update", "id": kept, "changes": {"content": "x", "revision": 99}},
        {"op": "delete", "id": MISSING},
        {"op": "delete", "id": "no id"},
        {"op": "fly"},
        {},
        _new("", "b"),
        _new("   ", "b"),
        _new("two", "c"),
    )
    assert (answer["success"], answer["succeeded"], answer["failed"]) == (False, 2, 9)
    statuses = [status for _name, status in _told(answer)]
    assert statuses == [200, 409, 422, 409, 404, 404, 422, 422, 422, 422, 200]
    errors = [item["error"] for item in answer["results"]]
    refusals = ["key_taken", "invalid", "stale", "not_found", "not_found", *["invalid"] * 4]
    assert [error and error["code"] for error in errors] == [None, *refusals, None]
    assert list(errors[2]["fields"]) == ["surprise"]
    assert list(errors[6]["fields"]) == ["op"]
    assert list(errors[8]["fields"]) == ["memory.content"]
    assert all(error["requestId"] for error in errors if error)
    assert Memory.objects.get(pk=kept).content == "tea"
    assert sorted(Memory.objects.values_list("key", flat=True)) == ["a", "c", "colour", "drink"]


def test_a_batch_leaves_one_audit_row_with_counts(alice: Any) -> None:
    AuditEntry.objects.all().delete()
    answer = _batch(alice, _new("one", "a"), _new("two", "a"), {"op": "delete", "id": MISSING})
    row = AuditEntry.objects.get()
    assert (row.action, row.actor, row.count) == ("memory.batch", "key:alice", 2)
    assert row.owner is not None
    assert row.owner.name == "alice"
    assert row.detail == {"created": 1, "updated": 1, "deleted": 0, "purged": 0, "failed": 1}
    assert row.target_ids == [item["id"] for item in answer["results"][:2]]


def test_a_batch_that_changes_nothing_leaves_no_audit_row(alice: Any) -> None:
    AuditEntry.objects.all().delete()
    _batch(alice, {"op": "delete", "id": MISSING})
    assert not AuditEntry.objects.exists()


def test_a_key_reaches_only_its_own_memories(api: Any, alice: Any) -> None:
    his = _batch(api("bob"), _new("his", "k"))["results"][0]["id"]
    answer = _batch(
        alice,
        {"op": "update", "id": his, "changes": {"content": "hers"}},
        {"op": "delete", "id": his, "purge": True},
        _new("planted", "k", apiKeyId="bob"),
        _new("for all", "k", shared=True),
    )
    assert _told(answer) == [("failed", 404), ("failed", 404), ("failed", 403), ("failed", 403)]
    assert list(Memory.objects.values_list("content", "api_key__name")) == [("his", "bob")]


def test_a_manager_writes_for_owners_it_names(api: Any, alice: Any) -> None:
    manager = api("manager", "read", "write", "manage")
    AuditEntry.objects.all().delete()
    answer = _batch(
        manager,
        _new("hers", "k", apiKeyId="alice"),
        _new("own", "k"),
        _new("nobody's", "k", apiKeyId="nobody"),
    )
    assert _told(answer) == [("created", 200), ("created", 200), ("failed", 404)]
    assert AuditEntry.objects.get().owner is None


@pytest.mark.parametrize("items", [[], [{"op": "delete", "id": "x"}] * 1001, {}, "x", None])
def test_from_one_to_a_thousand_items_are_taken(alice: Any, items: Any) -> None:
    refusal(alice.call("POST", "/api/memory/batch", {"items": items}), 422, "invalid")


def test_a_thousand_items_are_carried_out(alice: Any) -> None:
    answer = _batch(alice, *(_new(f"fact {place}", f"k{place}") for place in range(1000)))
    assert (answer["succeeded"], Memory.objects.count()) == (1000, 1000)
    assert AuditEntry.objects.get(action="memory.batch").count == 1000
