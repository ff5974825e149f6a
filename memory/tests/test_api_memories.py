"""``/api/memory``: create, read, change, delete, list, in the field names of the first system."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memory.models import Memory
from memory.principal import SCOPES
from memory.tests.rest import MISSING, refusal

Api = Callable[..., Any]
FIELDS = {
    "id",
    "apiKeyId",
    "apiKeyName",
    "sessionId",
    "type",
    "key",
    "content",
    "metadata",
    "createdAt",
    "updatedAt",
    "expiresAt",
    "occurredAt",
    "archivedAt",
    "accessCount",
    "lastAccessedAt",
    "pinned",
    "shared",
    "revision",
    "tokens",
}


@pytest.fixture
def alice(api: Api) -> Any:
    """A client of an ordinary key."""
    return api("alice")


def _create(client: Any, content: str = "likes tea", **fields: Any) -> dict[str, Any]:
    body = {"content": content, "key": content, **fields}
    answer: dict[str, Any] = client.call("POST", "/api/memory", body).json()
    return answer


def _three(client: Any) -> None:
    for content in ("oldest", "middle", "newest"):
        _create(client, content)


def _contents(response: Any) -> list[str]:
    return [row["content"] for row in response.json()["data"]]


def test_rest_04_a_new_memory_answers_its_fields_success_and_an_id_that_is_a_text(
    alice: Any,
) -> None:
    answer = _create(
        alice,
        type="episodic",
        sessionId="s1",
        metadata={"a": 1},
        expiresAt="2100-01-02T03:04:05Z",
        occurredAt="2001-02-03",
        pinned=True,
    )
    assert set(answer) == FIELDS | {"success", "created"}
    assert (answer["success"], answer["created"], type(answer["id"])) == (True, True, str)
    assert (answer["type"], answer["sessionId"], answer["metadata"]) == ("episodic", "s1", {"a": 1})
    assert answer["expiresAt"] == "2100-01-02T03:04:05.000Z"
    assert answer["occurredAt"] == "2001-02-03T00:00:00.000Z"
    assert (answer["pinned"], answer["apiKeyName"]) == (True, "alice")


def test_the_same_key_again_is_an_update_that_merges_metadata(alice: Any) -> None:
    first = _create(alice, "tea", key="drink", metadata={"a": 1, "b": 1})
    second = _create(alice, "cocoa", key="drink", metadata={"b": 2})
    assert (second["id"], second["created"]) == (first["id"], False)
    assert second["metadata"] == {"a": 1, "b": 2}
    assert second["revision"] == 2


def test_a_memory_is_read_under_memory(alice: Any) -> None:
    created = _create(alice)
    answer = alice.call("GET", f"/api/memory/{created['id']}").json()
    assert list(answer) == ["memory"]
    assert answer["memory"] == {name: created[name] for name in FIELDS}


def test_rest_05_a_change_answers_success_and_only_that(alice: Any) -> None:
    created = _create(alice, metadata={"a": 1})
    path = f"/api/memory/{created['id']}"
    response = alice.call("PUT", path, {"content": "likes cocoa", "metadata": {"b": 2}})
    assert (response.status_code, response.json()) == (200, {"success": True})
    memory = alice.call("GET", path).json()["memory"]
    assert (memory["content"], memory["metadata"]) == ("likes cocoa", {"b": 2})


def test_an_empty_change_is_accepted(alice: Any) -> None:
    created = _create(alice)
    assert alice.call("PUT", f"/api/memory/{created['id']}", {}).json() == {"success": True}


def test_null_clears_the_times_and_leaves_the_rest_alone(alice: Any) -> None:
    created = _create(alice, expiresAt="2100-01-01T00:00:00Z", occurredAt="2001-01-01T00:00:00Z")
    path = f"/api/memory/{created['id']}"
    body = dict.fromkeys(("expiresAt", "occurredAt", "content", "key", "metadata", "pinned"))
    assert alice.call("PUT", path, body).status_code == 200
    memory = alice.call("GET", path).json()["memory"]
    assert (memory["expiresAt"], memory["occurredAt"]) == (None, None)
    assert (memory["content"], memory["metadata"]) == (created["content"], created["metadata"])


def test_a_stale_revision_and_a_taken_key_are_409(alice: Any) -> None:
    _create(alice, "other", key="taken")
    path = f"/api/memory/{_create(alice, key='mine')['id']}"
    error = refusal(alice.call("PUT", path, {"key": "taken"}), 409, "key_taken")
    assert list(error["fields"]) == ["key"]
    assert alice.call("PUT", path, {"content": "new", "revision": 1}).status_code == 200
    refusal(alice.call("PUT", path, {"content": "newer", "revision": 1}), 409, "stale")


@pytest.mark.parametrize(
    ("method", "body"),
    [
        pytest.param("PUT", {"content": "x"}, id="rest_07"),
        pytest.param("DELETE", None, id="rest_08"),
        pytest.param("GET", None, id="rest_09"),
    ],
)
@pytest.mark.parametrize("reference", [MISSING, "nonsense", "%00", "..%2f..", "1"])
def test_what_is_not_there_is_404_in_one_shape(
    alice: Any, method: str, body: Any, reference: str
) -> None:
    refusal(alice.call(method, f"/api/memory/{reference}", body), 404, "not_found")


def test_delete_restore_history_and_purge(alice: Any) -> None:
    path = f"/api/memory/{_create(alice, key='k')['id']}"
    _create(alice, "likes cocoa", key="k")
    assert alice.call("DELETE", path).json() == {"success": True}
    refusal(alice.call("GET", path), 404, "not_found")
    assert _contents(alice.call("GET", "/api/memory", state="trash")) == ["likes cocoa"]
    restored = alice.call("POST", f"{path}/restore").json()["memory"]
    assert restored["content"] == "likes cocoa"
    (earlier,) = alice.call("GET", f"{path}/history").json()["data"]
    assert (earlier["revision"], earlier["content"], earlier["action"]) == (
        1,
        "likes tea",
        "upsert",
    )
    assert {"replacedAt", "replacedBy", "sessionId", "expiresAt"} <= set(earlier)
    assert alice.call("DELETE", path, purge="true").json() == {"success": True}
    assert not Memory.objects.exists()


def test_a_memory_goes_back_to_a_revision_of_its_history(alice: Any, api: Api) -> None:
    path = f"/api/memory/{_create(alice, key='k', metadata={'a': 1})['id']}"
    alice.call("PUT", path, {"content": "likes cocoa", "metadata": {}})
    back = alice.call("POST", f"{path}/restore", {"revision": 1}).json()["memory"]
    assert (back["content"], back["metadata"], back["revision"]) == ("likes tea", {"a": 1}, 3)
    actions = [row["action"] for row in alice.call("GET", f"{path}/history").json()["data"]]
    assert actions == ["revert", "edit"]
    refusal(alice.call("POST", f"{path}/restore", {"revision": 9}), 404, "not_found")
    refusal(alice.call("POST", f"{path}/restore", {"revision": 2**63}), 422, "invalid")
    refusal(api("bob").call("POST", f"{path}/restore", {"revision": 1}), 404, "not_found")


def test_restoring_when_the_key_was_taken_is_409(alice: Any) -> None:
    path = f"/api/memory/{_create(alice, key='k')['id']}"
    alice.call("DELETE", path)
    _create(alice, "other", key="k")
    refusal(alice.call("POST", f"{path}/restore"), 409, "key_taken")


def test_rest_03_an_empty_list_has_its_page_and_figures(alice: Any) -> None:
    answer = alice.call("GET", "/api/memory").json()
    assert set(answer) == {"data", "total", "page", "limit", "totalPages", "stats"}
    assert (answer["data"], answer["total"], answer["page"], answer["limit"]) == ([], 0, 1, 50)
    assert answer["totalPages"] == 0
    stats = answer["stats"]
    assert {"total", "byType", "tokensUsed", "hitRate", "cacheStats"} <= set(stats)
    assert (stats["hitRate"], stats["cacheStats"]) == (0.0, {"hits": 0, "misses": 0})


@pytest.mark.parametrize(
    ("query", "found"),
    [
        pytest.param({"limit": 2, "page": 1}, ["newest", "middle"], id="store_09"),
        pytest.param({"limit": 2, "page": 2}, ["oldest"], id="store_10 rest_02"),
        pytest.param({"page": 5}, [], id="store_11"),
        pytest.param({"offset": 1}, ["middle", "oldest"], id="store_12"),
        pytest.param({"offset": 2, "limit": 1, "page": 1}, ["oldest"], id="offset wins over page"),
        pytest.param({"offset": 0, "page": 3}, ["newest", "middle", "oldest"], id="offset 0 too"),
    ],
)
def test_pages_and_offsets(alice: Any, query: dict[str, int], found: list[str]) -> None:
    _three(alice)
    response = alice.call("GET", "/api/memory", **query)
    assert (_contents(response), response.json()["total"]) == (found, 3)


def test_the_second_page_says_where_it_lies(alice: Any) -> None:
    _three(alice)
    answer = alice.call("GET", "/api/memory", limit=2, page=2).json()
    assert (answer["page"], answer["limit"], answer["totalPages"]) == (2, 2, 2)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        pytest.param({"limit": 201}, "limit", id="rest_01"),
        ({"limit": 0}, "limit"),
        ({"limit": "many"}, "limit"),
        ({"limit": ""}, "limit"),
        ({"page": 0}, "page"),
        ({"page": -1}, "page"),
        ({"page": 10**30}, "page"),
        ({"offset": -1}, "offset"),
        ({"offset": 10**12}, "offset"),
        ({"type": "gossip"}, "type"),
        ({"state": "lost"}, "state"),
        ({"q": "a\0b"}, "q"),
    ],
)
def test_a_list_out_of_bounds_is_422_with_the_field(
    alice: Any, query: dict[str, Any], field: str
) -> None:
    error = refusal(alice.call("GET", "/api/memory", **query), 422, "invalid")
    assert list(error["fields"]) == [field]


def test_filters_narrow_the_list(alice: Any) -> None:
    _create(alice, "likes 100% cocoa", type="semantic", sessionId="s1")
    _create(alice, "has 100 cats", key="pets", type="factual")
    call = alice.call
    assert _contents(call("GET", "/api/memory", type="semantic")) == ["likes 100% cocoa"]
    assert _contents(call("GET", "/api/memory", sessionId="s1")) == ["likes 100% cocoa"]
    assert _contents(call("GET", "/api/memory", q="100%")) == ["likes 100% cocoa"], "no wildcard"
    assert _contents(call("GET", "/api/memory", q="PETS")) == ["has 100 cats"]
    assert _contents(call("GET", "/api/memory", q="_")) == []


def test_store_15_16_the_tokens_are_those_of_the_owner(api: Api) -> None:
    manager = api("manager", *SCOPES)
    alice, bob = api("alice"), api("bob")
    _create(alice, "aaaa")
    _create(bob, "bbbbbbbb")

    def tokens(client: Any, **query: Any) -> int:
        used: int = client.call("GET", "/api/memory", **query).json()["stats"]["tokensUsed"]
        return used

    assert (tokens(alice), tokens(bob), tokens(manager, apiKeyId="bob")) == (1, 2, 2)
    assert tokens(manager) == 0
    _create(manager, "Hello Moons")
    assert tokens(manager) == 3


def test_the_figures_ignore_the_other_filters(alice: Any) -> None:
    _create(alice, "one", type="semantic")
    _create(alice, "two")
    stats = alice.call("GET", "/api/memory", type="semantic", q="zzz").json()["stats"]
    assert (stats["total"], stats["byType"]) == (2, {"factual": 1, "semantic": 1})


def test_an_ordinary_key_that_names_another_owner_sees_its_own(api: Api) -> None:
    _create(api("bob"), "his")
    alice = api("alice")
    _create(alice, "hers")
    assert _contents(alice.call("GET", "/api/memory", apiKeyId="bob")) == ["hers"]
    body = {"content": "planted", "key": "k", "apiKeyId": "bob"}
    refusal(alice.call("POST", "/api/memory", body), 403, "not_owner")
    shared = {"content": "for all", "key": "k", "shared": True}
    refusal(alice.call("POST", "/api/memory", shared), 403, "scope_missing")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "content"),
        ({"content": "", "key": "k"}, "content"),
        ({"content": "  ", "key": "k"}, "content"),
        ({"content": 7, "key": "k"}, "content"),
        ({"content": "a\0", "key": "k"}, "content"),
        ({"content": "a", "key": "k" * 501}, "key"),
        ({"content": "a", "key": "k", "type": "gossip"}, "type"),
        ({"content": "a", "key": "k", "sessionId": "s" * 201}, "sessionId"),
        ({"content": "a", "key": "k", "metadata": []}, "metadata"),
        ({"content": "a", "key": "k", "expiresAt": "tomorrow"}, "expiresAt"),
        ({"content": "a", "key": "k", "expiresAt": "0001-01-01T00:00:00+14:00"}, "expiresAt"),
        ({"content": "a", "key": "k", "pinned": "yes"}, "pinned"),
    ],
)
def test_a_memory_that_cannot_be_stored_is_422_with_the_field(
    alice: Any, body: dict[str, Any], field: str
) -> None:
    error = refusal(alice.call("POST", "/api/memory", body), 422, "invalid")
    assert field in error["fields"]
    assert not Memory.objects.exists()


@pytest.mark.parametrize(
    "body",
    [
        '{"content": "\\ud800", "key": "k"}',
        '{"content": "a", "key": "k", "metadata": {"a": NaN}}',
        '{"content": "a", "key": "k", "metadata": {"a": "\\u0000"}}',
        '{"content": "a", "key": "k", "metadata": {"a": ' + "[" * 90 + "]" * 90 + "}}",
    ],
    ids=["lone surrogate", "NaN", "NUL in metadata", "deep metadata"],
)
def test_json_that_no_database_holds_is_422(alice: Any, body: str) -> None:
    refusal(alice.call("POST", "/api/memory", body), 422, "invalid")
