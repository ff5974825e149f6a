"""Filters over metadata: the same answers on every database, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memory.errors import Invalid
from memory.models import Memory
from memory.services import metadata_filters
from memory.tests.rest import refusal

ROWS: dict[str, dict[str, Any]] = {
    "a": {"n": 1, "s": "beta", "tags": ["x", "y", 1], "deep": {"er": {"v": True}}, "名": "茶"},
    "b": {"n": 2.5, "s": "Alpha", "tags": "xylophone", "deep": {"er": {"v": False}}},
    "c": {"n": "2", "s": "true", "tags": [], "deep": [1], "contains": "odd"},
    "d": {"n": None, "s": True, "tags": [True, 2.0], "deep": "er"},
    "e": {},
    "f": {"n": 10**30, "s": "étude", "tags": {"0": "x"}, "gt": 1},
}


@pytest.fixture
def alice(api: Any) -> Any:
    """A client whose memories have the rows as metadata."""
    client = api("alice")
    for key, metadata in ROWS.items():
        body = {"content": f"likes tea {key}", "key": key, "metadata": metadata}
        assert client.call("POST", "/api/memory", body).status_code == 200
    return client


FOUND: tuple[tuple[dict[str, Any], str], ...] = (
    ({}, "abcdef"),
    ({"n": 1}, "a"),
    ({"n": {"eq": 1.0}}, "a"),
    ({"n": {"eq": "2"}}, "c"),
    ({"n": {"gt": 1}}, "bf"),
    ({"n": {"gte": 1, "lt": 3}}, "ab"),
    ({"n": {"lte": 2.5}}, "ab"),
    ({"n": {"ne": 1}}, "bcdef"),
    ({"n": None}, "de"),
    ({"n": {"ne": None}}, "abcf"),
    ({"n": {"in": [1, "2", None]}}, "acde"),
    ({"s": True}, "d"),
    ({"s": "true"}, "c"),
    ({"s": {"gt": "Z"}}, "acf"),
    ({"s": {"lt": "b"}}, "b"),
    ({"s": {"gte": "z"}}, "f"),
    ({"s": {"contains": "et"}}, "a"),
    ({"s": {"contains": "%"}}, ""),
    ({"tags": {"contains": "x"}}, "ab"),
    ({"tags": {"contains": 1}}, "a"),
    ({"tags": {"contains": 2}}, "d"),
    ({"tags": {"contains": True}}, "d"),
    ({"tags.0": "x"}, "f"),
    ({"deep.er.v": True}, "a"),
    ({"deep.er.v": {"ne": True}}, "bcdef"),
    ({"deep.er.v": {"in": [True, False]}}, "ab"),
    ({"名": "茶"}, "a"),
    ({"contains": "odd"}, "c"),
    ({"gt": {"gt": 0}}, "f"),
    ({"OR": [{"n": 1}, {"s": "Alpha"}]}, "ab"),
    ({"AND": [{"n": {"gt": 0}}, {"NOT": {"s": "beta"}}]}, "bf"),
    ({"NOT": [{"n": 1}, {"n": "2"}]}, "bdef"),
    ({"n": {"gt": 0}, "OR": [{"s": "beta"}, {"AND": [{"gt": 1}, {"NOT": {"n": 1}}]}]}, "af"),
)


@pytest.mark.django_db
def test_every_filter_finds_the_same_on_every_database(alice: Any) -> None:
    for filters, expected in FOUND:
        rows = Memory.objects.filter(metadata_filters.condition(filters))
        keys = "".join(sorted(rows.values_list("key", flat=True)))
        assert keys == expected, filters


REFUSED: tuple[tuple[dict[str, Any], str], ...] = (
    ({"n": {"like": 1}}, "filters.n.like"),
    ({"n": {}}, "filters.n"),
    ({"n": [1]}, "filters.n"),
    ({"n": {"in": []}}, "filters.n.in"),
    ({"n": {"in": 1}}, "filters.n.in"),
    ({"n": {"in": [[1]]}}, "filters.n.in"),
    ({"n": {"gt": None}}, "filters.n.gt"),
    ({"n": {"gt": True}}, "filters.n.gt"),
    ({"n": {"contains": None}}, "filters.n.contains"),
    ({"n": 2**53 + 1}, "filters.n"),
    ({"n": float("inf")}, "filters.n"),
    ({"n": float("nan")}, "filters.n"),
    ({"n": "\0"}, "filters.n"),
    ({"n": "x" * 1001}, "filters.n"),
    ({"a..b": 1}, "filters.a..b"),
    ({"": 1}, "filters."),
    ({'q"uote': 1}, 'filters.q"uote'),
    ({"back\\slash": 1}, "filters.back\\slash"),
    ({".".join("abcdefghi"): 1}, "filters.a.b.c.d.e.f.g.h.i"),
    ({"AND": {"n": 1}}, "filters.AND"),
    ({"OR": []}, "filters.OR"),
    ({"OR": [{}]}, "filters.OR"),
    ({"NOT": [1]}, "filters.NOT.0"),
    ({"AND": [{"OR": [{"n": {"near": 1}}]}]}, "filters.AND.0.OR.0.n.near"),
    ({"n": {"in": list(range(51))}}, "filters"),
)


@pytest.mark.parametrize(("filters", "place"), REFUSED, ids=str)
def test_a_filter_that_cannot_be_carried_out_names_the_place(
    filters: dict[str, Any], place: str
) -> None:
    with pytest.raises(Invalid) as caught:
        metadata_filters.condition(filters)
    assert (caught.value.code, list(caught.value.fields)) == ("invalid_filter", [place])


def test_a_filter_is_at_most_five_levels_deep() -> None:
    filters: dict[str, Any] = {"n": 1}
    for _level in range(4):
        filters = {"NOT": filters}
    metadata_filters.condition(filters)
    with pytest.raises(Invalid) as caught:
        metadata_filters.condition({"NOT": filters})
    assert caught.value.code == "invalid_filter"


def test_lists_are_filtered_before_they_are_counted_and_cut(alice: Any) -> None:
    def listed(filters: object, **query: Any) -> Any:
        return alice.call("GET", "/api/memory", filters=json.dumps(filters), **query)

    answer = listed({"n": {"gt": 0}}, limit=2).json()
    assert ([row["key"] for row in answer["data"]], answer["total"]) == (["f", "b"], 3)
    assert [row["key"] for row in listed({"n": {"gt": 0}}, limit=2, page=2).json()["data"]] == ["a"]
    error = refusal(listed({"n": {"like": 1}}), 422, "invalid_filter")
    assert list(error["fields"]) == ["filters.n.like"]
    for text in ("{", "[]", "3", "[" * 5000, " " * 8000 + "{}"):
        refusal(alice.call("GET", "/api/memory", filters=text), 422, "invalid_filter")


@pytest.mark.parametrize("strategy", ["exact", "semantic", "hybrid", "recent"])
def test_retrieval_is_filtered_before_anything_is_ranked(
    alice: Any, work: Any, strategy: str
) -> None:
    work()
    body = {"query": "tea", "strategy": strategy, "limit": 2, "filters": {"n": {"in": [1, None]}}}
    answer = alice.call("POST", "/api/memory/retrieve-preview", body).json()
    assert len(answer["memories"]) == 2
    assert {hit["key"] for hit in answer["memories"]} <= set("ade")
    every = alice.call("POST", "/api/memory/retrieve-preview", {**body, "limit": 20}).json()
    assert sorted(hit["key"] for hit in every["memories"]) == ["a", "d", "e"]
    refused = {**body, "filters": {"n": {"like": 1}}}
    refusal(alice.call("POST", "/api/memory/retrieve-preview", refused), 422, "invalid_filter")


def test_why_not_tells_that_a_filter_left_a_memory_out(alice: Any) -> None:
    memory = Memory.objects.get(key="b")
    body = {"query": "tea", "memoryId": str(memory.pk), "filters": {"n": 1}}
    answer = alice.call("POST", "/api/memory/why-not", body).json()
    assert (answer["stage"], answer["reason"]) == ("scope", "filtered")
    assert [hint["code"] for hint in answer["hints"]] == ["no_filter"]
