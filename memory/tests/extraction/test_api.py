"""``/api/memory/extract``, ``/api/inbox`` and the settings of extraction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memory.models import InboxItem, Memory
from memory.tests.conftest import ApiClient
from memory.tests.rest import refusal

pytestmark = pytest.mark.django_db(transaction=True)
Api = Callable[..., ApiClient]
SAID = "I prefer dark mode. Maybe I like tea. My boss says I always lie."


def extract(client: ApiClient, text: str = SAID, **more: Any) -> dict[str, Any]:
    """The answer of the route."""
    answer = client.call("POST", "/api/memory/extract", {"text": text, **more})
    assert answer.status_code == 200, answer.content
    found: dict[str, Any] = answer.json()
    return found


def test_a_dry_run_tells_everything_and_stores_nothing(api: Api) -> None:
    found = extract(api("alice", "read"), dryRun=True)
    assert found["dryRun"] is True
    told = [(fact["statement"], fact["outcome"]) for fact in found["facts"]]
    assert told == [("I prefer dark mode", "stored"), ("Maybe I like tea", "waiting")]
    assert {"text": "I always lie", "reason": "hearsay"} in [
        {**piece, "text": "I always lie"} if "I always lie" in piece["text"] else piece
        for piece in found["guarded"]
    ]
    assert Memory.objects.count() == InboxItem.objects.count() == 0


def test_a_real_run_stores(api: Api) -> None:
    found = extract(api("alice"), sessionId="s-1")
    fact, doubt = found["facts"]
    assert fact["memoryId"] == str(Memory.objects.get().pk)
    assert doubt["inboxId"] == str(InboxItem.objects.get().pk)
    assert (fact["key"], fact["content"], fact["type"]) == (
        "preference:dark_mode",
        "dark mode",
        "factual",
    )


def test_a_reader_may_only_try(api: Api) -> None:
    answer = api("alice", "read").call("POST", "/api/memory/extract", {"text": "I like tea."})
    refusal(answer, 403, "scope_missing")


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ({}, "text"),
        ({"text": ""}, "text"),
        ({"text": "a\0b"}, "text"),
        ({"text": "x", "role": "system"}, "role"),
        ({"text": "x", "sessionId": "s" * 201}, "sessionId"),
        ({"text": "x", "injected": "no list"}, "injected"),
        ({"text": "x", "odd": 1}, "odd"),
    ],
)
def test_bad_bodies_are_refused_by_name(api: Api, body: dict[str, Any], name: str) -> None:
    answer = api("alice").call("POST", "/api/memory/extract", body)
    assert name in str(refusal(answer, 422, "invalid")["fields"])


ODD = ["I " * 40_000, "\ue000" * 50, "```" * 500, "我" * 9000, "「" * 99]


@pytest.mark.parametrize("text", ODD, ids=range(len(ODD)))
def test_odd_texts_are_no_error(api: Api, text: str) -> None:
    assert extract(api("alice"), text)["facts"] == []


def test_the_inbox_is_listed_and_decided(api: Api) -> None:
    client = api("alice")
    extract(client, "Maybe I like tea. Maybe I like cocoa. Maybe I like milk.")
    listed = client.call("GET", "/api/inbox").json()
    assert (listed["total"], listed["counts"]["pending"]) == (3, 3)
    first, second, third = (row["id"] for row in listed["data"])
    body = {"content": "I like hot cocoa", "revision": 1}
    accepted = client.call("POST", f"/api/inbox/{first}/accept", body).json()
    assert (accepted["state"], accepted["content"]) == ("accepted", "I like hot cocoa")
    assert client.call("POST", f"/api/inbox/{second}/reject", {}).json()["state"] == "rejected"
    again = client.call("POST", f"/api/inbox/{second}/reject", {})
    refusal(again, 409, "decided")
    assert client.call("POST", f"/api/inbox/{second}/reopen", {}).json()["state"] == "pending"
    decisions = {"action": "reject", "ids": [second, third, "odd"]}
    answer = client.call("POST", "/api/inbox/decisions", decisions).json()
    assert answer["decided"] == 2
    assert answer["results"][2] == {"id": "odd", "state": None, "error": "not_found"}
    assert client.call("GET", f"/api/inbox/{first}").json()["memoryId"]
    assert client.call("GET", "/api/inbox", state="rejected").json()["total"] == 2


def test_another_keys_items_are_not_there(api: Api) -> None:
    extract(api("alice"), "Maybe I like tea.")
    item = InboxItem.objects.get()
    bob = api("bob")
    assert bob.call("GET", "/api/inbox").json()["data"] == []
    refusal(bob.call("GET", f"/api/inbox/{item.pk}"), 404, "not_found")
    refusal(bob.call("POST", f"/api/inbox/{item.pk}/accept", {}), 404, "not_found")


def test_a_manager_sees_every_inbox(api: Api) -> None:
    extract(api("alice"), "Maybe I like tea.")
    manager = api("manager", "read", "manage")
    listed = manager.call("GET", "/api/inbox", apiKeyId="alice").json()
    assert listed["data"][0]["apiKeyName"] == "alice"
    assert manager.call("GET", "/api/inbox", apiKeyId="manager").json()["data"] == []


def test_the_list_takes_few_statements(api: Api, django_assert_max_num_queries: Any) -> None:
    client = api("alice")
    extract(client, " ".join(f"Maybe I like tea number {n}." for n in range(30)))
    with django_assert_max_num_queries(12):
        assert len(client.call("GET", "/api/inbox").json()["data"]) == 30


def test_settings_are_read_and_changed(api: Api) -> None:
    client = api("manager", "manage")
    assert client.call("GET", "/api/settings/extraction").json() == {
        "extractionEnabled": True,
        "extractFromReplies": False,
        "extractionModel": None,
        "extractionDailyTokens": 50_000,
    }
    changes = {"extractFromReplies": True, "extractionModel": "lab/small"}
    changed = client.call("PUT", "/api/settings/extraction", changes).json()
    assert (changed["extractFromReplies"], changed["extractionModel"]) == (True, "lab/small")
    cleared = client.call("PUT", "/api/settings/extraction", {"extractionModel": ""}).json()
    assert cleared["extractionModel"] is None
    bad = client.call("PUT", "/api/settings/extraction", {"extractionDailyTokens": -1})
    refusal(bad, 422, "invalid")
