"""Nothing that a client of another system sends gives a 500, and refusals have their shape."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory.tests.compat import CompatClient, client, remembered
from memory.tests.rest import MISSING
from memory.tests.test_api_fuzz import VALUES

pytestmark = pytest.mark.usefixtures("first_start")

BODIES: dict[tuple[str, str], dict[str, Any]] = {
    ("POST", "/v3/memories/add/"): {
        "messages": "tea",
        "user_id": "ann",
        "run_id": "r",
        "metadata": {},
        "infer": False,
        "immutable": False,
        "expiration_date": "2090-01-01",
        "timestamp": 1714953600,
        "filters": {},
    },
    ("POST", "/v3/memories/search/"): {
        "query": "tea",
        "filters": {"user_id": "ann"},
        "top_k": 3,
        "threshold": 0.1,
        "fields": ["id"],
        "categories": ["x"],
        "metadata": {"a": 1},
        "show_expired": True,
    },
    ("POST", "/v3/memories/"): {
        "filters": {"user_id": "ann"},
        "start_date": "2020-01-01",
        "end_date": "2090-01-01",
        "keywords": "tea",
        "show_expired": True,
    },
    ("PUT", f"/v1/memories/{MISSING}/"): {
        "text": "tea",
        "metadata": {},
        "timestamp": 1,
        "expiration_date": None,
    },
    ("PUT", "/v1/batch/"): {"memories": [{"memory_id": MISSING, "text": "tea"}]},
    ("DELETE", "/v1/batch/"): {"memories": [MISSING]},
    ("POST", "/v1/feedback/"): {"memory_id": MISSING, "feedback": "POSITIVE"},
    ("POST", "/mem0/search"): {"query": "tea", "user_id": "ann"},
    ("PUT", "/store/items"): {
        "namespace": ["a"],
        "key": "k",
        "value": {"text": "tea"},
        "index": ["text"],
        "ttl": 1,
    },
    ("DELETE", "/store/items"): {"namespace": ["a"], "key": "k"},
    ("POST", "/store/items/search"): {
        "namespace_prefix": ["a"],
        "filter": {"a": 1},
        "limit": 1,
        "offset": 0,
        "query": "tea",
    },
    ("POST", "/store/namespaces"): {"prefix": ["a"], "suffix": ["*"], "max_depth": 1},
}
NAMES = ["user_id", "run_id", "created_at", "id", "metadata", "AND", "OR", "NOT", "expiration_date"]
OPERATORS = ["eq", "ne", "in", "nin", "gt", "lte", "contains", "icontains", "$eq", "$gt"]
FILTERS = st.recursive(
    VALUES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*NAMES, *OPERATORS, "a.b"]), inner, max_size=3)
    ),
    max_leaves=5,
)
BOUNDED = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.fixture
def alice() -> CompatClient:
    """A client with a memory."""
    made = client("alice")
    remembered(made, "likes tea", run_id="r", metadata={"a": {"b": 1}})
    return made


def check(answer: Any) -> None:
    """An answer that works, or a refusal in the shape."""
    if answer.status_code >= 300:
        assert answer.status_code in (400, 404, 405, 409, 413, 422), answer.content
        assert list(answer.json()) == ["detail"], answer.content


@pytest.mark.parametrize("route", BODIES, ids=" ".join)
@BOUNDED
@given(data=st.data())
def test_no_body_gives_a_500(
    alice: CompatClient, route: tuple[str, str], data: st.DataObject
) -> None:
    good = BODIES[route]
    odd = data.draw(st.dictionaries(st.sampled_from(sorted(good)), FILTERS, max_size=2))
    check(alice.call(*route, json.dumps({**good, **odd}).encode()))


@pytest.mark.parametrize("path", ["/v3/memories/", "/store/items/search"])
@BOUNDED
@given(sent=FILTERS)
def test_no_filter_gives_a_500(alice: CompatClient, path: str, sent: Any) -> None:
    name = "filter" if "store" in path else "filters"
    check(alice.call("POST", path, json.dumps({name: sent}).encode()))


@pytest.mark.parametrize("route", BODIES, ids=" ".join)
@BOUNDED
@given(body=st.binary(max_size=40) | VALUES.map(lambda value: json.dumps(value).encode()))
def test_no_bytes_give_a_500(alice: CompatClient, route: tuple[str, str], body: bytes) -> None:
    check(alice.call(*route, body))


@BOUNDED
@given(
    query=st.dictionaries(
        st.sampled_from(
            [
                "user_id",
                "filters",
                "limit",
                "page",
                "page_size",
                "event_type",
                "start_date",
                "type",
                "key",
                "namespace",
                "refresh_ttl",
            ]
        ),
        st.text(st.characters(codec="utf-8"), max_size=12)
        | st.integers().map(str)
        | st.sampled_from(["*", "{", "{'a': 1}", "[" * 3000, "a.b", "\0", "2020-01-01"]),
        max_size=4,
    )
)
def test_no_query_gives_a_500(alice: CompatClient, query: dict[str, str]) -> None:
    for path in ("/v1/entities/", "/v1/events/", "/mem0/memories", "/store/items"):
        check(alice.call("GET", path, **query))
    check(alice.call("DELETE", "/v1/memories/", **query))


@BOUNDED
@given(
    reference=st.text(
        st.characters(codec="utf-8", exclude_characters="?#/"), min_size=1, max_size=20
    )
    | st.sampled_from(["%00", "%ff", "..", "{}", "urn:uuid:" + MISSING, "9" * 400])
)
def test_no_reference_gives_a_500(alice: CompatClient, reference: str) -> None:
    for path in ("/v1/memories/{}/", "/v1/event/{}/", "/v2/entities/user/{}/", "/mem0/memories/{}"):
        check(alice.call("GET", path.format(reference)))
