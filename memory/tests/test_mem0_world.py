"""mem0's protocol: entities, events, the project, its own server, and who may do what."""

from __future__ import annotations

from typing import Any

import pytest

from memory.models import Memory
from memory.principal import Principal
from memory.services import keys
from memory.tests.compat import CompatClient, client, remembered
from memory.tests.conftest import Remember
from memory.tests.rest import MISSING

pytestmark = pytest.mark.usefixtures("first_start")


@pytest.fixture
def alice() -> CompatClient:
    """A client of a key."""
    return client("alice")


def test_a_key_is_a_project_of_its_own(alice: CompatClient) -> None:
    me = alice.ask("GET", "/v1/ping/")
    assert me["status"] == "ok"
    path = f"/api/v1/orgs/organizations/{me['org_id']}/projects/{me['project_id']}/"
    assert alice.ask("GET", path)["name"] == "alice"
    assert alice.ask("GET", path, fields=["name", "unknown"]) == {"name": "alice", "unknown": None}
    assert alice.ask("GET", f"{path}members/")["members"][0]["username"] == "alice"
    client("bob").refused(404, "GET", path)


def test_entities_are_counted_and_deleted_with_their_memories(alice: CompatClient) -> None:
    remembered(alice, "tea", run_id="a/b")
    remembered(alice, "cocoa", agent_id="bot")
    remembered(client("bob"), "milk", user_id="zoe")
    found = alice.ask("GET", "/v1/entities/")
    assert [(row["type"], row["name"], row["total_memories"]) for row in found["results"]] == [
        ("user", "ann", 2),
        ("agent", "bot", 1),
        ("run", "a/b", 1),
    ]
    assert (found["count"], found["total_users"], found["total_apps"]) == (3, 1, 0)
    page = alice.ask("GET", "/v1/entities/", page="2", page_size="2")
    assert [row["name"] for row in page["results"]] == ["a/b"]
    assert [row["type"] for row in alice.ask("GET", "/v1/entities/", type="run")["results"]] == [
        "run"
    ]
    assert alice.ask("GET", "/v2/entities/run/a%2Fb/")["total_memories"] == 1
    alice.ask("DELETE", "/v2/entities/run/a%2Fb/")
    assert alice.ask("GET", "/v1/entities/")["total_runs"] == 0
    for path in ("/v2/entities/run/a%2Fb/", "/v2/entities/user/zoe/"):
        assert alice.refused(404, "DELETE", path) == "There is no such entity."
        alice.refused(404, "GET", path)
    assert "type" in alice.refused(400, "DELETE", "/v2/entities/team/ann/")
    assert Memory.objects.filter(trashed_at=None).count() == 2


def test_sessions_of_other_clients_are_runs(
    alice: CompatClient, remember: Remember, manager: Principal
) -> None:
    remember(manager, "likes tea", owner="alice", session_id="s1", metadata={"mood": "calm"})
    page = alice.ask("POST", "/v3/memories/", {"filters": {"run_id": "s1"}})
    assert [(row["memory"], row["run_id"], row["metadata"]) for row in page["results"]] == [
        ("likes tea", "s1", {"mood": "calm"})
    ]


def test_events_tell_what_was_done(alice: CompatClient) -> None:
    body = {"messages": "likes tea", "user_id": "ann"}
    added = alice.ask("POST", "/v3/memories/add/", body)
    event = alice.ask("GET", f"/v1/event/{added['event_id']}/")
    assert (event["event_type"], event["status"]) == ("ADD", "SUCCEEDED")
    assert [row["data"]["memory"] for row in event["results"]] == ["likes tea"]
    alice.ask("POST", "/v3/memories/search/", {"query": "tea", "filters": {"user_id": "ann"}})
    alice.ask("DELETE", f"/v1/memories/{added['results'][0]['id']}/")
    events = alice.ask("GET", "/v1/events/")
    assert [row["event_type"] for row in events["results"]] == ["DELETE", "SEARCH", "ADD"]
    assert alice.ask("GET", "/v1/events/", event_type="search")["count"] == 1
    assert alice.ask("GET", "/v1/events/", end_date="2024-01-01")["count"] == 0
    assert alice.ask("GET", f"/v1/event/{added['event_id']}/")["results"] == []
    for reference in (MISSING, "x", "00000000-0000-0000-0000-000000000001"):
        assert alice.refused(404, "GET", f"/v1/event/{reference}/") == "There is no such event."
    client("bob").refused(404, "GET", f"/v1/event/{added['event_id']}/")


def test_what_needs_a_language_model_says_so(alice: CompatClient) -> None:
    remembered(alice, "tea")
    for path in ("/v1/exports/", "/v1/exports/get/", "/v1/summary/"):
        assert "language model" in alice.refused(400, "POST", path, {"filters": {}})
    profile = alice.ask("GET", "/v2/entities/user/ann/profile/")
    assert (profile["status"], profile["profile"]) == ("not_enabled", {})
    alice.refused(404, "GET", "/v2/entities/user/zoe/profile/")
    assert alice.ask("GET", "/v2/profiles/settings/")["enabled"] is False
    assert "Profiles" in alice.refused(400, "POST", "/v2/profiles/jobs/", {})
    assert "Webhooks" in alice.refused(400, "GET", "/api/v1/webhooks/projects/x/")


def test_its_own_server_is_under_a_prefix_and_takes_its_header() -> None:
    alice = client("alice", scheme="X-Api-Key")
    body = {"messages": [{"role": "user", "content": "likes tea"}], "user_id": "ann"}
    one = alice.ask("POST", "/mem0/memories", {**body, "infer": False})["results"][0]["id"]
    path = f"/mem0/memories/{one}"
    assert alice.ask("GET", path)["memory"] == "likes tea"
    alice.ask("PUT", path, {"data": "likes cocoa"})
    assert [row["event"] for row in alice.ask("GET", f"{path}/history")] == ["ADD", "UPDATE"]
    listed = alice.ask("GET", "/mem0/memories", user_id="ann", limit="5")["results"]
    assert [row["memory"] for row in listed] == ["likes cocoa"]
    for asked in ({"user_id": "ann"}, {"filters": {"user_id": "ann"}}):
        found = alice.ask("POST", "/mem0/search", {"query": "cocoa", **asked})["results"]
        assert [row["id"] for row in found] == [one]
    alice.refused(400, "POST", "/mem0/search", {"query": "cocoa"})
    alice.refused(400, "GET", "/mem0/memories")
    alice.refused(400, "GET", "/mem0/memories", user_id="ann", limit="0")
    alice.refused(400, "DELETE", "/mem0/memories")
    alice.ask("DELETE", path)
    alice.refused(404, "GET", path)
    remembered(alice, "milk")
    alice.ask("DELETE", "/mem0/memories", user_id="ann")
    remembered(alice, "bread", user_id="bo")
    assert alice.ask("POST", "/mem0/reset")["message"] == "Moved to the trash: 1."
    assert "studio" in alice.refused(400, "POST", "/mem0/configure", {})


ROUTES: tuple[tuple[str, str, str, dict[str, Any] | None], ...] = (
    ("write", "POST", "/v3/memories/add/", {"messages": "tea", "user_id": "ann"}),
    ("read", "POST", "/v3/memories/search/", {"query": "tea", "filters": {"user_id": "ann"}}),
    ("read", "POST", "/v3/memories/", {"filters": {"user_id": "ann"}}),
    ("read", "GET", f"/v1/memories/{MISSING}/", None),
    ("write", "PUT", f"/v1/memories/{MISSING}/", {"text": "tea"}),
    ("write", "DELETE", f"/v1/memories/{MISSING}/", None),
    ("read", "GET", f"/v1/memories/{MISSING}/history/", None),
    ("write", "DELETE", "/v1/memories/?user_id=ann", None),
    ("write", "PUT", "/v1/batch/", {"memories": [{"memory_id": MISSING, "text": "tea"}]}),
    ("write", "DELETE", "/v1/batch/", {"memories": [MISSING]}),
    ("write", "POST", "/v1/feedback/", {"memory_id": MISSING, "feedback": "POSITIVE"}),
    ("read", "GET", "/v1/entities/", None),
    ("read", "GET", "/v2/entities/user/ann/", None),
    ("write", "DELETE", "/v2/entities/user/ann/", None),
    ("read", "GET", "/v1/events/", None),
    ("read", "GET", f"/v1/event/{MISSING}/", None),
    ("write", "POST", "/mem0/reset", None),
    ("write", "PUT", "/store/items", {"namespace": ["a"], "key": "k", "value": {}}),
    ("read", "GET", "/store/items?namespace=a&key=k", None),
    ("write", "DELETE", "/store/items", {"namespace": ["a"], "key": "k"}),
    ("read", "POST", "/store/items/search", {}),
    ("read", "POST", "/store/namespaces", {}),
)


def named(route: tuple[str, str, str, Any]) -> str:
    """The name of a case."""
    return f"{route[1]} {route[2]}"


@pytest.mark.parametrize("route", ROUTES, ids=named)
def test_every_route_needs_a_key_with_its_scope(
    route: tuple[str, str, str, dict[str, Any] | None],
) -> None:
    scope, method, path, body = route
    for secret in (None, "ms_wrong"):
        stranger = CompatClient(secret)
        assert stranger.refused(401, method, path, body) == "The API key is not valid."
    other = client("other", "read" if scope == "write" else "write")
    assert f"“{scope}”" in other.refused(403, method, path, body)
    # The right to manage others is of no use here, and stands for nothing else.
    assert "scope" in client("chief", "manage").refused(403, method, path, body)


def test_nothing_of_another_owner_is_seen_or_touched(alice: CompatClient) -> None:
    one = remembered(alice, "likes tea", run_id="r1")
    alice.ask("PUT", "/store/items", {"namespace": ["a"], "key": "k", "value": {"text": "tea"}})
    for bob in (client("bob"), client("chief", "read", "write", "manage")):
        everyone = {"filters": {"NOT": {"user_id": "nobody"}}}
        assert bob.ask("POST", "/v3/memories/", everyone)["count"] == 0
        query = {"query": "tea", **everyone}
        assert bob.ask("POST", "/v3/memories/search/", query)["results"] == []
        for method, body in (("GET", None), ("PUT", {"text": "x"}), ("DELETE", None)):
            assert bob.refused(404, method, f"/v1/memories/{one}/", body) == "No such memory."
        bob.refused(404, "GET", f"/v1/memories/{one}/history/")
        bob.refused(404, "POST", "/v1/feedback/", {"memory_id": one, "feedback": "POSITIVE"})
        for method in ("PUT", "DELETE"):
            many = {"memories": [{"memory_id": one, "text": "x"}]}
            assert "No such memory." in bob.refused(400, method, "/v1/batch/", many)
        assert bob.ask("GET", "/v1/entities/")["results"] == []
        bob.ask("DELETE", "/v1/memories/", user_id="ann")
        bob.ask("POST", "/mem0/reset")
        assert bob.ask("GET", "/store/items", namespace="a", key="k") is None
        assert bob.ask("POST", "/store/items/search", {"query": "tea"})["items"] == []
        assert bob.ask("POST", "/store/namespaces", {})["namespaces"] == []
        bob.ask("DELETE", "/store/items", {"namespace": ["a"], "key": "k"})
    assert alice.ask("GET", f"/v1/memories/{one}/")["memory"] == "likes tea"
    assert alice.ask("GET", "/store/items", namespace="a", key="k")["value"] == {"text": "tea"}


def test_addresses_and_methods_that_are_not_there_have_the_shape(alice: CompatClient) -> None:
    for path in ("/v1/nothing/", "/v3/x", "/mem0/x", "/store/x", "/api/v1/x/"):
        assert alice.refused(404, "GET", path) == "There is nothing at this address."
    assert "method" in alice.refused(405, "PATCH", "/v1/batch/")
    assert alice.call("PATCH", "/v1/batch/")["Allow"]


def test_a_command_of_the_machine_has_no_memories_of_its_own_here() -> None:
    CompatClient(keys.local_pass()).refused(401, "GET", "/v1/ping/")
    client("alice")
    assert CompatClient(keys.local_pass("alice"), "Bearer").ask("GET", "/v1/ping/")
