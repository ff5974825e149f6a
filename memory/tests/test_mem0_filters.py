"""The filters of mem0's clients: the same answers on every database, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from memory.models import Memory
from memory.services.mem0.filters import Mem0Filter
from memory.tests.compat import CompatClient, client, remembered

pytestmark = pytest.mark.usefixtures("first_start")

ROWS: dict[str, dict[str, Any]] = {
    "a": {"user_id": "ann", "metadata": {"n": 1, "s": "Beta", "tags": ["x", 1]}},
    "b": {"user_id": "ann", "agent_id": "bot", "run_id": "r1", "metadata": {"n": 2.5}},
    "c": {"user_id": "bo", "run_id": "R1", "metadata": {"deep": {"er": "v"}, "s": "straße"}},
    "d": {"app_id": "shop", "expiration_date": "2090-01-31", "timestamp": "2024-05-06"},
    "e": {"user_id": "Ann", "timestamp": 1714953600, "immutable": True},
}


@pytest.fixture
def alice() -> CompatClient:
    """A client whose memories are the rows."""
    made = client("alice")
    for name, fields in ROWS.items():
        remembered(made, f"Tea {name}", **{"user_id": None, **fields})
    return made


FOUND: tuple[tuple[dict[str, Any], str], ...] = (
    ({"user_id": "ann"}, "ab"),
    ({"user_id": {"eq": "ann"}}, "ab"),
    ({"user_id": {"ne": "ann"}}, "cde"),
    ({"user_id": {"in": ["ann", "bo"]}}, "abc"),
    ({"user_id": ["ann", "bo"]}, "abc"),
    ({"user_id": {"nin": ["ann", "bo"]}}, "de"),
    ({"user_id": {"icontains": "ANN"}}, "abe"),
    ({"user_id": {"contains": "nn"}}, "abe"),
    ({"user_id": "*"}, "abce"),
    ({"user_id": None}, "d"),
    ({"user_id": {"ne": "*"}}, "d"),
    ({"agent_id": "*"}, "b"),
    ({"app_id": "shop"}, "d"),
    ({"run_id": "*"}, "bc"),
    ({"run_id": "r1"}, "b"),
    ({"run_id": None}, "ade"),
    ({"run_id": {"icontains": "R1"}}, "bc"),
    ({"run_id": {"ne": "r1"}}, "acde"),
    ({"user_id": "ann", "run_id": "r1"}, "b"),
    ({"AND": [{"user_id": "*"}, {"NOT": {"user_id": "ann"}}]}, "ce"),
    ({"OR": [{"app_id": "shop"}, {"agent_id": "bot"}]}, "bd"),
    ({"NOT": [{"user_id": "ann"}, {"user_id": "bo"}]}, "de"),
    ({"metadata": {"n": 1}}, "a"),
    ({"metadata": {"n": {"gt": 0, "lt": 2}}}, "a"),
    ({"metadata": {"s": {"icontains": "BETA"}}}, "a"),
    ({"metadata": {"s": {"contains": "beta"}}}, ""),
    ({"metadata": {"s": {"icontains": "SSE"}}}, ""),
    ({"metadata": {"deep": {"er": "v"}}}, "c"),
    ({"metadata": {"tags": {"contains": "x"}}}, "a"),
    ({"n": {"gte": 2}}, "b"),
    ({"deep.er": "v"}, "c"),
    ({"n": "*"}, "ab"),
    ({"created_at": {"gte": "2024-05-06", "lte": "2024-05-06"}}, "de"),
    ({"created_at": "2024-05-06"}, "de"),
    ({"created_at": {"gt": "2024-05-06"}}, "abc"),
    ({"created_at": {"lt": "2024-05-06T00:00:00Z"}}, ""),
    ({"created_at": {"lte": 1714953600}}, "de"),
    ({"expiration_date": "2090-01-31"}, "d"),
    ({"expiration_date": {"gt": "2090-01-31"}}, ""),
    ({"expiration_date": {"gte": "2090-01-31"}}, "d"),
    ({"expiration_date": None}, "abce"),
    ({"immutable": True}, "e"),
    ({"keywords": {"icontains": "TEA B"}}, "b"),
    ({"memory": {"contains": "tea"}}, ""),
    ({"memory": {"contains": "%"}}, ""),
    ({"id": "00000000-0000-4000-8000-000000000000"}, ""),
    ({"id": "nonsense"}, ""),
    ({"categories": {"contains": "x"}}, ""),
)


def test_every_filter_finds_the_same_on_every_database(alice: CompatClient) -> None:
    for sent, expected in FOUND:
        rows = Memory.objects.filter(Mem0Filter(sent).condition(""))
        names = "".join(sorted(text[-1] for text in rows.values_list("content", flat=True)))
        assert names == expected, sent


def test_a_search_and_a_list_see_what_the_filter_lets_through(alice: CompatClient) -> None:
    for sent, expected in FOUND:
        page = alice.ask("POST", "/v3/memories/", {"filters": sent})
        assert "".join(sorted(row["memory"][-1] for row in page["results"])) == expected, sent
        body = {"query": "tea", "filters": sent}
        found = alice.ask("POST", "/v3/memories/search/", body)["results"]
        assert "".join(sorted(row["memory"][-1] for row in found)) == expected, sent


def test_ids_pick_memories(alice: CompatClient) -> None:
    rows = alice.ask("POST", "/v3/memories/", {"filters": {"user_id": "*"}})["results"]
    ids = [row["id"] for row in rows[:2]]
    page = alice.ask("POST", "/v3/memories/", {"filters": {"id": {"in": [*ids, "nonsense"]}}})
    assert [row["id"] for row in page["results"]] == ids


REFUSED: tuple[dict[str, Any], ...] = (
    {"user_id": {"near": "ann"}},
    {"user_id": {}},
    {"user_id": {"in": []}},
    {"user_id": {"in": "ann"}},
    {"user_id": {"gt": None}},
    {"user_id": {"eq": {"a": 1}}},
    {"user_id": "\0"},
    {"run_id": {"gt": "a"}},
    {"run_id": "a" * 2000},
    {"run_id": 1},
    {"created_at": "soon"},
    {"created_at": {"contains": "2024"}},
    {"created_at": True},
    {"created_at": 1e308},
    {"expiration_date": "9999-12-31"},
    {"id": {"gt": "a"}},
    {"metadata": "x"},
    {"metadata": {}},
    {"metadata": {"mem0": {"user_id": "ann"}}},
    {"mem0.user_id": "ann"},
    {"a..b": 1},
    {'a"b': 1},
    {"AND": {"user_id": "ann"}},
    {"AND": []},
    {"OR": [{}]},
    {"user_id": {"in": [str(number) for number in range(201)]}},
    {"AND": [{"AND": [{"AND": [{"AND": [{"AND": [{"user_id": "ann"}]}]}]}]}]},
    {"metadata": {"a": {"b": {"c": {"d": {"e": {"f": {"g": {"h": {"i": 1}}}}}}}}}},
)


@pytest.mark.parametrize("sent", REFUSED, ids=lambda sent: str(sent)[:40])
def test_a_filter_that_cannot_be_carried_out_is_refused(sent: dict[str, Any]) -> None:
    alice = client("alice")
    assert "filters" in alice.refused(400, "POST", "/v3/memories/", {"filters": sent})
    body = {"query": "tea", "filters": sent}
    assert "filters" in alice.refused(400, "POST", "/v3/memories/search/", body)
