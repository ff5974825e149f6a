"""``/api/settings/qdrant`` against a server: the switch, the tests of it, its figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from engine.testing.fake_qdrant import FakeQdrant, Fault, serving
from memory.models import AuditEntry
from memory.principal import SCOPES, Principal
from memory.tests.asking import days_ago
from memory.tests.conftest import Remember, Work
from memory.tests.qdrant_server import local_name
from memory.tests.rest import refusal

Api = Callable[..., Any]
QDRANT = "/api/settings/qdrant"
STATUS = "/api/memory/engine-status"


@pytest.fixture
def server() -> Iterator[FakeQdrant]:
    with serving() as made:
        yield made


@pytest.fixture
def client(api: Api) -> Any:
    """A client that may do everything."""
    return api("client", *SCOPES)


@pytest.fixture
def filled(
    alice: Principal, remember: Remember, work: Work, server: FakeQdrant, client: Any
) -> Any:
    """The client, with three memories in Qdrant; one has expired."""
    remember(alice, "likes green tea", key="drink")
    remember(alice, "drives to work", key="car")
    remember(alice, "drank tea once", key="old", expires_at=days_ago(1))
    work()
    place = {"enabled": True, "host": "127.0.0.1", "port": server.port}
    assert client.call("PUT", QDRANT, place).status_code == 200
    work()
    return client


def test_the_switch_answers_how_a_real_search_went(server: FakeQdrant, client: Any) -> None:
    place = {"enabled": True, "host": "127.0.0.1", "port": server.port}
    answer = client.call("PUT", QDRANT, place).json()
    assert answer["probe"]["ok"] is True
    assert any(call.path.endswith("/points/query") for call in server.calls)
    assert server.shards.collections == {}
    server.stop()
    answer = client.call("PUT", QDRANT, {"quantization": "int8"}).json()
    assert (answer["probe"]["ok"], answer["probe"]["error"]) == (False, "qdrant_unreachable")
    assert answer["enabled"] is True
    assert client.call("PUT", QDRANT, {"enabled": False}).json()["probe"] is None


def test_health_is_a_real_search_with_its_time(filled: Any, server: FakeQdrant) -> None:
    answer = filled.call("GET", f"{QDRANT}/health").json()
    assert (answer["ok"], answer["error"], answer["points"]) == (True, None, 3)
    assert answer["latencyMs"] > 0
    assert answer["dimensions"] == 64
    server.fail(Fault(status=500), only="/points/query")
    assert server.is_ready
    answer = filled.call("GET", f"{QDRANT}/health").json()
    assert (answer["ok"], answer["error"]) == (False, "qdrant_error")


def test_a_search_test_asks_qdrant_alone(filled: Any, server: FakeQdrant) -> None:
    answer = filled.call("POST", f"{QDRANT}/search", {"query": "green tea", "topK": 5}).json()
    assert answer["ok"] is True
    assert [hit["payload"]["key"] for hit in answer["results"]] == ["drink", "car"]
    first = answer["results"][0]
    assert first["id"] == first["payload"]["memoryId"]
    assert 0 < first["score"] <= 1
    assert AuditEntry.objects.filter(action="qdrant.search").exists()
    one = filled.call("POST", f"{QDRANT}/search", {"query": "tea", "topK": 1}).json()
    assert len(one["results"]) == 1
    server.stop()
    answer = filled.call("POST", f"{QDRANT}/search", {"query": "tea"}).json()
    assert (answer["ok"], answer["results"]) == (False, [])
    assert answer["error"] == "qdrant_unreachable"


def test_a_search_test_keeps_the_limits_of_a_query(filled: Any) -> None:
    long = {"query": "tea " * 400}
    refusal(filled.call("POST", f"{QDRANT}/search", long), 422, "query_too_long")


def test_a_clean_up_tells_its_figures(filled: Any) -> None:
    answer = filled.call("POST", f"{QDRANT}/cleanup").json()
    assert answer == {
        "ok": True,
        "deletedCount": 1,
        "expiredCount": 1,
        "strayCount": 0,
        "retentionDays": 30,
        "error": None,
        "message": None,
    }


def test_the_engine_status_has_health_and_latency(filled: Any, server: FakeQdrant) -> None:
    answer = filled.call("GET", STATUS).json()
    assert (answer["qdrant"]["enabled"], answer["qdrant"]["healthy"]) == (True, True)
    assert answer["qdrant"]["latencyMs"] > 0
    assert answer["vectorStore"]["backend"] == "qdrant"
    server.stop()
    answer = filled.call("GET", STATUS).json()
    assert (answer["qdrant"]["healthy"], answer["qdrant"]["error"]) == (
        False,
        "qdrant_unreachable",
    )
    assert answer["qdrant"]["latencyMs"] is None


def test_an_answer_says_which_store_served_and_why(filled: Any, server: FakeQdrant) -> None:
    path = "/api/memory/retrieve-preview"
    body = {"query": "tea", "strategy": "semantic", "allOwners": True}
    assert filled.call("POST", path, body).json()["resolution"]["vectorStore"] == "qdrant"
    server.stop()
    answer = filled.call("POST", path, body).json()
    resolution = answer["resolution"]
    assert answer["memories"][0]["key"] == "drink"
    assert resolution["vectorStore"] == local_name()
    assert resolution["degraded"] == [
        {
            "tier": "vectorStore",
            "code": "qdrant_unreachable",
            "message": "Qdrant cannot be reached.",
        }
    ]
    assert resolution["fallbackReason"] == "Qdrant cannot be reached."


def test_the_model_that_is_really_used_is_told(filled: Any) -> None:
    answer = filled.call("GET", QDRANT).json()
    assert answer["embeddingModel"] == "openai/text-embedding-3-small"
    assert answer["activeEmbeddingModel"] == "local/fake-e5"
    same = filled.call("PUT", QDRANT, {"embeddingModel": "local/fake-e5"}).json()
    assert same["activeEmbeddingModel"] is None


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"enabled": True, "host": "http://169.254.169.254"}, "host"),
        ({"host": "file:///etc/passwd"}, "host"),
        ({"host": "h", "collection": "../x"}, "collection"),
    ],
)
def test_an_address_that_may_not_be_called_is_a_422(
    client: Any, body: dict[str, Any], field: str
) -> None:
    error = refusal(client.call("PUT", QDRANT, body), 422, "invalid")
    assert list(error["fields"]) == [field]


def test_the_key_reaches_the_server_and_no_answer(server: FakeQdrant, client: Any) -> None:
    server.api_key = "qd-secret-1234"
    place = {"enabled": True, "host": "127.0.0.1", "port": server.port}
    wrong = client.call("PUT", QDRANT, place)
    assert wrong.json()["probe"]["error"] == "qdrant_auth"
    right = client.call("PUT", QDRANT, {"apiKey": "qd-secret-1234"})
    assert right.json()["probe"]["ok"] is True
    assert "qd-secret-1234" not in right.content.decode()
    assert right.json()["apiKeyMasked"] == "***1234"
    assert "qd-secret-1234" not in client.call("GET", STATUS).content.decode()
    removed = client.call("PUT", QDRANT, {"apiKey": ""}).json()
    assert (removed["hasApiKey"], removed["probe"]["error"]) == (False, "qdrant_auth")


def test_a_key_without_manage_touches_nothing(api: Api, server: FakeQdrant) -> None:
    ordinary = api("ordinary")
    for method, path in (
        ("GET", QDRANT),
        ("PUT", QDRANT),
        ("GET", f"{QDRANT}/health"),
        ("POST", f"{QDRANT}/cleanup"),
    ):
        sent: dict[str, Any] | None = {} if method == "PUT" else None
        refusal(ordinary.call(method, path, sent), 403, "scope_missing")
    query = {"query": "tea"}
    refusal(ordinary.call("POST", f"{QDRANT}/search", query), 403, "scope_missing")
    assert server.calls == []
