"""LangGraph's store: items under namespaces, as memories of a key."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from memory.clock import now
from memory.models import ApiKey, AuditEntry, Memory
from memory.principal import Principal
from memory.services import passages
from memory.tests.compat import CompatClient, client
from memory.tests.conftest import Remember, Work

pytestmark = pytest.mark.usefixtures("first_start")


class Store:
    """The store as its client calls it."""

    def __init__(self, alice: CompatClient) -> None:
        self.client = alice

    def put(self, namespace: str, key: str, value: dict[str, Any], **more: Any) -> None:
        """Store an item; the namespace with dots."""
        body = {"namespace": namespace.split("."), "key": key, "value": value, **more}
        self.client.ask("PUT", "/store/items", body)

    def get(self, namespace: str, key: str, **more: str) -> Any:
        """An item, or None."""
        return self.client.ask("GET", "/store/items", namespace=namespace, key=key, **more)

    def keys(self, *prefix: str, **more: Any) -> list[str]:
        """The keys that a search finds, in its order."""
        body = {"namespace_prefix": list(prefix), **more}
        return [
            item["key"] for item in self.client.ask("POST", "/store/items/search", body)["items"]
        ]

    def namespaces(self, **body: Any) -> list[str]:
        """Namespaces with dots."""
        answer = self.client.ask("POST", "/store/namespaces", body)
        return [".".join(labels) for labels in answer["namespaces"]]


@pytest.fixture
def store() -> Store:
    """A store of a key."""
    return Store(client("alice", scheme="X-Api-Key"))


def test_an_item_is_put_replaced_read_and_deleted(store: Store) -> None:
    value = {"text": "likes 抹茶", "n": [1, None, {"a": 2.5}], "b": True}
    store.put("users.ann", "profile.v1", value)
    item = store.get("users.ann", "profile.v1")
    assert (item["namespace"], item["key"], item["value"]) == (
        ["users", "ann"],
        "profile.v1",
        value,
    )
    store.put("users.ann", "profile.v1", {"n": 3})
    again = store.get("users.ann", "profile.v1")
    assert again["value"] == {"n": 3}
    assert again["created_at"] == item["created_at"] < again["updated_at"]
    memory = Memory.objects.get()
    assert (memory.revision, memory.content) == (2, '{"n": 3}')
    body = {"namespace": ["users", "ann"], "key": "profile.v1"}
    for _time in range(2):
        store.client.ask("DELETE", "/store/items", body)
    assert store.get("users.ann", "profile.v1") is None
    assert store.keys() == []
    actions = AuditEntry.objects.order_by("id").values_list("action", flat=True)
    assert list(actions)[-5:] == [
        "memory.create",
        "memory.read",
        "memory.create",
        "memory.read",
        "memory.delete",
    ]


def test_places_are_never_mistaken_for_one_another(store: Store) -> None:
    places = [("a", "b.c"), ("a.b", "c"), ("a", "b..c"), ("A", "b.c"), ("a%", "b"), ("a_", "b")]
    for namespace, key in places:
        store.put(namespace, key, {"at": f"{namespace} {key}"})
    for namespace, key in places:
        assert store.get(namespace, key)["value"] == {"at": f"{namespace} {key}"}
    assert sorted(store.keys("a")) == ["b..c", "b.c", "c"]
    assert store.keys("a", "b") == ["c"]
    assert store.keys("A") == ["b.c"]
    assert store.keys("a%") == ["b"]


def test_namespaces_are_listed_by_their_ends(store: Store) -> None:
    for namespace in ("users.ann.notes", "users.bo.notes", "users.bo.plans", "docs"):
        store.put(namespace, "k", {"a": 1})
    assert store.namespaces() == ["docs", "users.ann.notes", "users.bo.notes", "users.bo.plans"]
    assert store.namespaces(prefix=["users", "bo"]) == ["users.bo.notes", "users.bo.plans"]
    assert store.namespaces(suffix=["notes"]) == ["users.ann.notes", "users.bo.notes"]
    assert store.namespaces(prefix=["users", "*", "plans"]) == ["users.bo.plans"]
    assert store.namespaces(prefix=["*", "ann"]) == ["users.ann.notes"]
    assert store.namespaces(max_depth=2) == ["docs", "users.ann", "users.bo"]
    assert store.namespaces(limit=1, offset=1) == ["users.ann.notes"]
    assert store.namespaces(prefix=["nobody"]) == []


FILTERS: tuple[tuple[dict[str, Any], str], ...] = (
    ({"n": 1}, "a"),
    ({"n": {"$eq": 1}}, "a"),
    ({"n": {"$ne": 1}}, "bcd"),
    ({"n": {"$gt": 1, "$lte": 2.5}}, "b"),
    ({"n": {"$gte": 1}}, "ab"),
    ({"n": {"$lt": 2}}, "a"),
    ({"s": "x", "n": 2.5}, "b"),
    ({"deep": {"er": "v"}}, "c"),
    ({"deep": {"er": {"$eq": "v"}}}, "c"),
    ({"flag": True}, "d"),
    ({"n": None}, "cd"),
    ({"with.dot": 1}, "d"),
)


def test_filters_compare_members_of_the_value(store: Store) -> None:
    store.put("f", "a", {"n": 1, "s": "x"})
    store.put("f", "b", {"n": 2.5, "s": "x"})
    store.put("f", "c", {"deep": {"er": "v"}, "n": None})
    store.put("f", "d", {"flag": True, "with.dot": 1})
    for sent, expected in FILTERS:
        assert "".join(sorted(store.keys("f", filter=sent))) == expected, sent
    assert len(store.keys("f", limit=2)) == 2
    assert store.keys("f", limit=2, offset=2) == store.keys("f")[2:]


def test_a_query_finds_by_words_and_by_meaning_within_the_namespace(
    store: Store, work: Work
) -> None:
    store.put("users.ann", "drink", {"text": "drinks green tea", "kind": "food"})
    store.put("users.ann", "walk", {"text": "walks by the river", "kind": "tea"})
    store.put("users.bo", "drink", {"text": "drinks green tea"})
    work()
    body = {"namespace_prefix": ["users", "ann"], "query": "green tea"}
    items = store.client.ask("POST", "/store/items/search", body)["items"]
    assert items[0]["key"] == "drink"
    assert items[0]["score"] > 0
    assert store.keys("users", query="green tea", limit=2) == ["drink", "drink"]
    assert store.keys("users", query="green tea", filter={"kind": "food"}) == ["drink"]
    assert store.keys("users", query="tea", limit=1, offset=1)
    assert store.keys("users", query="tea", offset=100) == []
    assert store.keys("users", query="tea " * 2000)


def test_only_what_is_indexed_is_found_by_a_query(store: Store) -> None:
    store.put("i", "none", {"text": "zebra"}, index=False)
    store.put("i", "part", {"a": {"b": "zebra"}, "c": "lion"}, index=["a.b"])
    store.put("i", "list", {"notes": [{"t": "zebra"}, {"t": "lion"}]}, index=["notes[*].t"])
    store.put("i", "first", {"notes": ["zebra", "lion"]}, index=["notes[0]", "missing"])
    store.put("i", "nothing", {"a": "zebra"}, index=["missing"])
    assert sorted(store.keys("i", query="zebra")) == ["first", "list", "part"]
    assert store.keys("i", query="lion") == ["list"]
    assert len(store.keys("i")) == 5


def test_an_item_lives_as_long_as_it_is_read(store: Store) -> None:
    store.put("t", "k", {"text": "tea"}, ttl=10)
    store.put("t", "other", {"text": "tea"})

    def age(minutes: float) -> None:
        row = Memory.objects.get(key="store:t..k")
        row.expires_at = now() + timedelta(minutes=minutes)
        row.save()
        passages.sync([row])

    def left() -> float:
        expires_at = Memory.objects.get(key="store:t..k").expires_at
        assert expires_at is not None
        return (expires_at - now()).total_seconds() / 60

    assert 9.9 < left() <= 10
    age(5)
    store.get("t", "k", refresh_ttl="false")
    assert left() <= 5
    store.get("t", "k")
    assert 9.9 < left() <= 10
    age(5)
    store.keys("t", query="tea", refresh_ttl=False)
    assert left() <= 5
    store.keys("t", query="tea")
    assert 9.9 < left() <= 10
    age(-1)
    assert store.get("t", "k") is None
    assert (store.keys("t"), store.keys("t", query="tea")) == (["other"], ["other"])
    store.put("t", "k", {"text": "tea"})
    assert Memory.objects.get(key="store:t..k").expires_at is None


def test_many_items_are_refreshed_at_once(store: Store, django_assert_max_num_queries: Any) -> None:
    for number in range(40):
        store.put("n", f"k{number}", {"text": "tea"}, ttl=60)
    with django_assert_max_num_queries(25):
        assert len(store.keys("n", limit=100)) == 40
    store.client.ask("GET", "/store/items", namespace="n", key="k0")
    lives = Memory.objects.values_list("expires_at", flat=True)
    assert all(expiry and expiry > now() + timedelta(minutes=59) for expiry in lives)


def test_who_may_only_read_refreshes_nothing(store: Store) -> None:
    store.put("t", "k", {"text": "tea"}, ttl=10)
    Memory.objects.update(expires_at=now() + timedelta(minutes=5))
    ApiKey.objects.filter(name="alice").update(scopes=["read"])
    assert store.get("t", "k")["value"] == {"text": "tea"}
    expires_at = Memory.objects.get().expires_at
    assert expires_at is not None
    assert expires_at < now() + timedelta(minutes=6)


def test_a_text_that_is_edited_in_the_studio_is_the_values(store: Store) -> None:
    store.put("e", "k", {"text": "likes tea", "n": 1})
    store.put("e", "two", {"a": "likes", "b": "tea"})
    for memory in Memory.objects.all():
        memory.content = "likes cocoa"
        memory.save()
    assert store.get("e", "k")["value"] == {"text": "likes cocoa", "n": 1}
    assert store.get("e", "two")["value"] == {"a": "likes", "b": "tea"}


@pytest.mark.parametrize("field", [["text"], {"a": 1}, 5, None, "absent"])
def test_metadata_that_others_wrote_harms_no_item(store: Store, field: Any) -> None:
    store.put("n", "fine", {"text": "tea"})
    store.put("n", "odd", {"text": "coffee"})
    held = {"value": {"text": "coffee"}, "field": field, "ttl": [1], "indexed": 0}
    Memory.objects.filter(key="store:n..odd").update(metadata={"store": held})
    assert store.get("n", "odd")["value"] == {"text": "coffee"}
    assert sorted(store.keys("n")) == ["fine", "odd"]


def test_other_memories_are_no_items(store: Store, remember: Remember, manager: Principal) -> None:
    remember(manager, "likes tea", owner="alice", key="drink")
    remember(manager, "stands there", owner="alice", key="store:a..k")
    assert store.keys() == ["k"]
    assert store.get("a", "k")["value"] == {"content": "stands there"}


BAD: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("PUT", "namespace", {"namespace": [], "key": "k", "value": {}}),
    ("PUT", "namespace", {"namespace": ["a.b"], "key": "k", "value": {}}),
    ("PUT", "namespace", {"namespace": [""], "key": "k", "value": {}}),
    ("PUT", "namespace", {"namespace": ["a"] * 51, "key": "k", "value": {}}),
    ("PUT", "key", {"namespace": ["a"], "key": "", "value": {}}),
    ("PUT", "key", {"namespace": ["a"], "key": " k", "value": {}}),
    ("PUT", "key", {"namespace": ["a"], "key": "k" * 500, "value": {}}),
    ("PUT", "value", {"namespace": ["a"], "key": "k", "value": 1}),
    ("PUT", "metadata", {"namespace": ["a"], "key": "k", "value": {"a": "b" * 70_000}}),
    ("PUT", "ttl", {"namespace": ["a"], "key": "k", "value": {}, "ttl": 0}),
    ("PUT", "ttl", {"namespace": ["a"], "key": "k", "value": {}, "ttl": 1e300}),
    ("PUT", "index", {"namespace": ["a"], "key": "k", "value": {}, "index": ["a..b"]}),
    ("PUT", "index", {"namespace": ["a"], "key": "k", "value": {}, "index": True}),
    ("POST", "filter", {"filter": {"a": {"$near": 1}}}),
    ("POST", "filter", {"filter": {"a": [1]}}),
    ("POST", "filter", {"filter": {"a": {}}}),
    ("POST", "filter", {"filter": {'a"b': 1}}),
    ("POST", "limit", {"limit": 0}),
    ("POST", "limit", {"limit": 1001}),
    ("POST", "offset", {"offset": -1}),
    ("POST", "query", {"query": "\0"}),
    ("POST", "namespace_prefix", {"namespace_prefix": ["a.b"]}),
)


@pytest.mark.parametrize(("method", "word", "body"), BAD)
def test_what_cannot_be_stored_or_asked_is_refused(
    store: Store, method: str, word: str, body: dict[str, Any]
) -> None:
    path = "/store/items" if method == "PUT" else "/store/items/search"
    assert word in store.client.refused(422, method, path, body)
    assert Memory.objects.count() == 0
