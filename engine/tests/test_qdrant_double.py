"""The double is a faithful server: what its clients meet is what Qdrant's documentation says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from engine.testing.fake_qdrant import FakeQdrant, serving

POINT = {"id": 1, "vector": [3.0, 4.0, 0.0, 0.0], "payload": {"kind": "a", "on": True}}


@pytest.fixture
def qdrant() -> Iterator[FakeQdrant]:
    with serving() as server:
        yield server


@pytest.fixture
def http(qdrant: FakeQdrant) -> Iterator[httpx.Client]:
    """A plain client, and a collection ``c`` of four dimensions."""
    with httpx.Client(base_url=f"http://127.0.0.1:{qdrant.port}", trust_env=False) as client:
        created = {"vectors": {"size": 4, "distance": "Cosine"}}
        assert client.put("/collections/c", json=created).json()["result"] is True
        yield client


def put(http: httpx.Client, *points: dict[str, Any], wait: bool = True) -> Any:
    flag = "true" if wait else "false"
    return http.put(f"/collections/c/points?wait={flag}", json={"points": list(points)}).json()


def query(http: httpx.Client, **body: Any) -> list[Any]:
    asked = {"query": [1.0, 0.0, 0.0, 0.0], **body}
    answer = http.post("/collections/c/points/query", json=asked).json()
    points: list[Any] = answer["result"]["points"]
    return points


def test_answers_come_in_an_envelope(http: httpx.Client) -> None:
    answer = put(http, POINT)
    assert (answer["status"], answer["result"]["status"]) == ("ok", "completed")
    assert answer["time"] >= 0


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "text"),
    [
        ("GET", "/collections/x", None, 404, "doesn't exist"),
        ("POST", "/collections/x/points/query", {"query": [1.0] * 4}, 404, "doesn't exist"),
        (
            "PUT",
            "/collections/c",
            {"vectors": {"size": 4, "distance": "Cosine"}},
            409,
            "already exists",
        ),
        (
            "PUT",
            "/collections/c/points?wait=true",
            {"points": [{"id": 1, "vector": [1.0], "payload": {}}]},
            400,
            "expected dim: 4, got 1",
        ),
        (
            "PUT",
            "/collections/c/points?wait=true",
            {"points": [{"id": -1, "vector": [1.0] * 4}]},
            400,
            "not a valid point ID",
        ),
        (
            "PUT",
            "/collections/c/points?wait=true",
            {"points": [{"id": "abc", "vector": [1.0] * 4}]},
            400,
            "not a valid point ID",
        ),
        ("POST", "/collections/c/points/query", {"query": [1.0]}, 400, "expected dim: 4"),
    ],
)
def test_refusals_have_their_status_and_say_why(
    http: httpx.Client, method: str, path: str, body: object, status: int, text: str
) -> None:
    answer = http.request(method, path, json=body)
    assert answer.status_code == status
    assert text in answer.json()["status"]["error"]


def test_a_wrong_key_is_refused_in_plain_text(qdrant: FakeQdrant, http: httpx.Client) -> None:
    qdrant.api_key = "right"
    answer = http.get("/collections")
    assert (answer.status_code, answer.text) == (401, "Must provide an API key")
    assert http.get("/collections", headers={"api-key": "x"}).text == "Invalid API key or JWT"
    assert http.get("/collections", headers={"api-key": "right"}).status_code == 200
    assert http.get("/readyz").status_code == 200


def test_it_says_whether_it_is_ready(qdrant: FakeQdrant, http: httpx.Client) -> None:
    assert http.get("/healthz").text == "healthz check passed"
    assert http.get("/readyz").text == "all shards are ready"
    qdrant.is_ready = False
    assert http.get("/readyz").status_code == 503


def test_vectors_are_normalised_when_they_are_written(http: httpx.Client) -> None:
    put(http, POINT)
    (found,) = query(http, with_vector=True, with_payload=True)
    assert found["vector"] == pytest.approx([0.6, 0.8, 0.0, 0.0])
    assert found["score"] == pytest.approx(0.6)
    assert found["payload"] == {"kind": "a", "on": True}


def test_an_update_that_is_not_waited_for_is_seen_later(
    qdrant: FakeQdrant, http: httpx.Client
) -> None:
    qdrant.shards.hold()
    assert put(http, POINT, wait=False)["result"]["status"] == "acknowledged"
    assert query(http) == []
    qdrant.shards.release()
    put(http, {**POINT, "id": 2})
    assert sorted(point["id"] for point in query(http)) == [1, 2]


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({"must": [{"key": "kind", "match": {"value": "a"}}]}, [1]),
        ({"must": [{"key": "kind", "match": {"any": ["a", "b"]}}]}, [1, 2]),
        ({"must": [{"key": "kind", "match": {"except": ["a"]}}]}, [2, 3]),
        ({"must": [{"key": "on", "match": {"value": True}}]}, [1]),
        ({"must": [{"key": "on", "match": {"value": False}}]}, [2]),
        ({"must_not": [{"key": "on", "match": {"value": True}}]}, [2, 3]),
        ({"should": [{"has_id": [3]}, {"key": "kind", "match": {"value": "b"}}]}, [2, 3]),
        ({"must": [{"key": "n", "range": {"gte": 5, "lt": 9}}]}, [2]),
        ({"must": [{"is_empty": {"key": "on"}}]}, [3]),
    ],
)
def test_filters_choose_points(
    http: httpx.Client, chosen: dict[str, Any], expected: list[int]
) -> None:
    put(
        http,
        POINT,
        {**POINT, "id": 2, "payload": {"kind": "b", "on": False, "n": 5}},
        {**POINT, "id": 3, "payload": {"kind": "c", "n": 9}},
    )
    assert sorted(point["id"] for point in query(http, filter=chosen)) == expected
    count = http.post("/collections/c/points/count", json={"filter": chosen, "exact": True})
    assert count.json()["result"]["count"] == len(expected)
    http.post("/collections/c/points/delete?wait=true", json={"filter": chosen})
    assert query(http, filter=chosen) == []


def test_a_scroll_goes_on_where_it_was(http: httpx.Client) -> None:
    put(http, *({**POINT, "id": key} for key in (1, 2, 3)))
    first = http.post("/collections/c/points/scroll", json={"limit": 2}).json()["result"]
    assert [point["id"] for point in first["points"]] == [1, 2]
    rest = {"limit": 2, "offset": first["next_page_offset"]}
    second = http.post("/collections/c/points/scroll", json=rest).json()["result"]
    assert ([point["id"] for point in second["points"]], second["next_page_offset"]) == ([3], None)


def test_a_threshold_cuts_what_is_far(http: httpx.Client) -> None:
    put(http, POINT, {**POINT, "id": 2, "vector": [0.0, 0.0, 1.0, 0.0]})
    assert [point["id"] for point in query(http, score_threshold=0.5)] == [1]


def test_an_alias_is_switched_in_one_step(http: httpx.Client) -> None:
    http.put("/collections/d", json={"vectors": {"size": 4, "distance": "Cosine"}})
    for name in ("c", "d"):
        steps = [
            {"delete_alias": {"alias_name": "live"}},
            {"create_alias": {"alias_name": "live", "collection_name": name}},
        ]
        assert http.post("/collections/aliases", json={"actions": steps}).json()["result"] is True
        aliases = http.get("/aliases").json()["result"]["aliases"]
        assert aliases == [{"alias_name": "live", "collection_name": name}]
    assert http.get("/collections/live/exists").json()["result"]["exists"] is True
    taken = [{"create_alias": {"alias_name": "c", "collection_name": "d"}}]
    assert http.post("/collections/aliases", json={"actions": taken}).status_code == 409
