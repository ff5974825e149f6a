"""The HTTP backend (first seed, GenericMemoryBackend): behaviours 1 to 25, and the contracts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import pytest

from engine.backends.http import Dialect, HttpBackend
from engine.backends.rest import Address, Rest
from engine.errors import BackendFailed
from engine.net.client import HttpClient
from engine.net.policy import OPERATOR, PUBLIC_ONLY
from engine.net.strict_json import Json
from engine.protocols import MemoryBackend
from engine.records import Changes, Draft, Filter, Search
from engine.testing.contracts_backend_faults import BackendFaultsContract, Served
from engine.testing.contracts_backends import BackendContract
from engine.testing.fake_backend import KEY, FakeService
from engine.testing.fake_provider import Answer, Provider, json_answer, serving

MEMORY = {"id": "m1", "key": "tea", "content": "likes tea", "type": "factual", "apiKeyId": "alice"}
DRAFT = Draft("tea", "likes tea", owner="alice")


def backend_at(
    provider: Provider, *, base: str = "", key: str = KEY, dialect: Dialect | None = None
) -> HttpBackend:
    """A backend that speaks to the double."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    address = Address(f"http://127.0.0.1:{provider.port}{base}", headers, 5000)
    rest = Rest(address, HttpClient(OPERATOR), wait=lambda _s: None)
    return HttpBackend("brain", "Brain", rest, dialect)


@pytest.fixture
def provider() -> Iterator[Provider]:
    """The double, still answering whatever a test tells it to."""
    with serving() as running:
        yield running


@pytest.fixture
def backend(provider: Provider) -> Iterator[HttpBackend]:
    """A backend with the default conventions."""
    made = backend_at(provider)
    yield made
    made.shutdown()


def sent(provider: Provider) -> tuple[str, str, dict[str, list[str]]]:
    """Method, path and query of the last request."""
    last = provider.requests[-1]
    parts = urlsplit(last.path)
    return last.method, parts.path, parse_qs(parts.query)


class TestConstructor:
    def test_1_the_id_and_the_name_are_those_given(self, backend: HttpBackend) -> None:
        assert (backend.id, backend.display_name) == ("brain", "Brain")

    def test_2_a_trailing_slash_and_a_base_path_are_kept_apart(self, provider: Provider) -> None:
        provider.script = [json_answer(MEMORY)]
        backend_at(provider, base="/v1/").get("m1")
        assert sent(provider)[1] == "/v1/memories/m1"


class TestHealth:
    def test_3_success(self, backend: HttpBackend, provider: Provider) -> None:
        provider.script = [json_answer({"status": "ok"}), json_answer([])]
        assert backend.health().available is True
        assert [urlsplit(r.path).path for r in provider.requests] == ["/health", "/memories/search"]

    def test_4_a_500_is_unhealthy(self, backend: HttpBackend, provider: Provider) -> None:
        provider.script = [Answer(500)]
        health = backend.health()
        assert (health.available, health.reason) == (
            False,
            "The server answered with status 500.",
        )

    def test_5_a_network_error_is_unhealthy(self) -> None:
        with serving() as gone:
            made = backend_at(gone)
        health = made.health()
        assert (health.available, health.detail["code"]) == (False, "unreachable")

    def test_6_the_latency_is_told(self, backend: HttpBackend, provider: Provider) -> None:
        provider.script = [json_answer({}), json_answer([])]
        latency = backend.health().detail["latency_ms"]
        assert isinstance(latency, float)
        assert latency > 0

    def test_a_health_route_that_works_is_not_enough(
        self, backend: HttpBackend, provider: Provider
    ) -> None:
        provider.script = [json_answer({"status": "ok"}), Answer(500)]
        assert backend.health().available is False

    def test_a_service_without_a_health_route_is_judged_by_a_search(
        self, backend: HttpBackend, provider: Provider
    ) -> None:
        provider.script = [Answer(404), json_answer([])]
        health = backend.health()
        assert (health.available, health.detail["has_health_route"]) == (True, False)


class TestInitialize:
    def test_7_success(self, backend: HttpBackend, provider: Provider) -> None:
        provider.script = [json_answer({})]
        backend.initialize()
        assert sent(provider)[:2] == ("GET", "/health")

    def test_8_failure(self, backend: HttpBackend, provider: Provider) -> None:
        provider.script = [Answer(500)]
        with pytest.raises(BackendFailed):
            backend.initialize()


class TestCreate:
    def test_9_the_default_endpoint(self, backend: HttpBackend, provider: Provider) -> None:
        provider.script = [json_answer(MEMORY, 201)]
        assert backend.create(DRAFT).id == "m1"
        assert sent(provider)[:2] == ("POST", "/memories")
        assert provider.requests[-1].json() == {
            "apiKeyId": "alice",
            "sessionId": "",
            "type": "factual",
            "key": "tea",
            "content": "likes tea",
            "metadata": {},
            "expiresAt": None,
        }

    def test_10_another_endpoint(self, provider: Provider) -> None:
        provider.script = [json_answer(MEMORY)]
        backend_at(provider, dialect=Dialect({"create": "/api/memory"})).create(DRAFT)
        assert sent(provider)[:2] == ("POST", "/api/memory")

    @pytest.mark.parametrize(
        "answer",
        [
            {"memory": MEMORY},
            {"success": True, "data": MEMORY},
            {"success": True, "id": MEMORY},
            {"success": True, "id": "m1"},
            {**MEMORY, "metadata": '{"a": 1}'},
        ],
        ids=["wrapped", "data", "the first system's", "only an id", "metadata as text"],
    )
    def test_the_record_is_found_in_any_usual_answer(
        self, backend: HttpBackend, provider: Provider, answer: object
    ) -> None:
        provider.script = [json_answer(answer)]
        record = backend.create(DRAFT)
        assert (record.id, record.key, record.content) == ("m1", "tea", "likes tea")

    def test_an_answer_without_an_id_is_a_failure(
        self, backend: HttpBackend, provider: Provider
    ) -> None:
        provider.script = [json_answer({"success": True})]
        with pytest.raises(BackendFailed) as failed:
            backend.create(DRAFT)
        assert failed.value.code == "invalid_response"


class TestGet:
    def test_11_success(self, backend: HttpBackend, provider: Provider) -> None:
        provider.script = [json_answer(MEMORY)]
        record = backend.get("m1")
        assert record is not None
        assert (record.id, record.owner) == ("m1", "alice")
        assert sent(provider)[:2] == ("GET", "/memories/m1")

    def test_12_a_404_is_none(self, backend: HttpBackend, provider: Provider) -> None:
        provider.script = [Answer(404)]
        assert backend.get("m1") is None

    def test_13_anything_else_raises(self, backend: HttpBackend, provider: Provider) -> None:
        provider.script = [Answer(403)]
        with pytest.raises(BackendFailed) as failed:
            backend.get("m1")
        assert failed.value.code == "no_key"

    def test_generic_backend_03_a_500_whose_body_holds_404_raises(
        self, backend: HttpBackend, provider: Provider
    ) -> None:
        provider.script = [Answer(500, b"item 404404")] * 2
        with pytest.raises(BackendFailed):
            backend.get("m1")

    @pytest.mark.parametrize("named", [{"id": "uid"}, {"memoryId": "uid"}])
    def test_14_another_path_parameter(self, provider: Provider, named: dict[str, str]) -> None:
        provider.script = [json_answer(MEMORY)]
        dialect = Dialect({"get": "/items/{uid}/full"}, path_params=named)
        backend_at(provider, dialect=dialect).get("m1")
        assert sent(provider)[1] == "/items/m1/full"

    def test_an_id_stays_one_piece_of_the_path(
        self, backend: HttpBackend, provider: Provider
    ) -> None:
        provider.script = [Answer(404)]
        backend.get("a/../b?x=1#y")
        assert provider.requests[-1].path == "/memories/a%2F..%2Fb%3Fx%3D1%23y"


class TestUpdate:
    def test_15_success(self, backend: HttpBackend, provider: Provider) -> None:
        provider.script = [json_answer(MEMORY)]
        assert backend.update("m1", Changes(content="likes coffee", session="s")) is True
        assert sent(provider)[:2] == ("PATCH", "/memories/m1")
        assert provider.requests[-1].json() == {"content": "likes coffee", "sessionId": "s"}

    def test_16_a_404_is_false(self, backend: HttpBackend, provider: Provider) -> None:
        provider.script = [Answer(404)]
        assert backend.update("m1", Changes(content="x")) is False

    def test_updates_may_be_a_put(self, provider: Provider) -> None:
        provider.script = [json_answer(MEMORY)]
        backend_at(provider, dialect=Dialect(update_method="PUT")).update("m1", Changes(key="k"))
        assert sent(provider)[0] == "PUT"


class TestDelete:
    def test_17_success(self, backend: HttpBackend, provider: Provider) -> None:
        provider.script = [Answer(204)]
        assert backend.delete("m1") is True
        assert sent(provider)[:2] == ("DELETE", "/memories/m1")

    def test_18_a_404_is_false(self, backend: HttpBackend, provider: Provider) -> None:
        provider.script = [Answer(404)]
        assert backend.delete("m1") is False


class TestList:
    def test_19_the_query_parameters(self, backend: HttpBackend, provider: Provider) -> None:
        provider.script = [json_answer({"data": [MEMORY], "total": 7, "byType": {"factual": 7}})]
        wanted = Filter("alice", "factual", "s1", "green tea", limit=10, offset=20)
        page = backend.list_records(wanted)
        assert ([r.id for r in page.data], page.total, page.by_type) == (["m1"], 7, {"factual": 7})
        assert sent(provider)[1:] == (
            "/memories",
            {
                "query": ["green tea"],
                "apiKeyId": ["alice"],
                "type": ["factual"],
                "sessionId": ["s1"],
                "limit": ["10"],
                "offset": ["20"],
                "orderBy": ["createdAt"],
                "orderDir": ["desc"],
            },
        )

    def test_20_other_names_of_parameters(self, provider: Provider) -> None:
        provider.script = [json_answer([MEMORY])]
        names = {"apiKeyId": "user", "limit": "count", "orderBy": "sort"}
        page = backend_at(provider, dialect=Dialect(query_params=names)).list_records(
            Filter("alice", limit=5)
        )
        assert page.total == 1
        assert {"user", "count", "sort"} <= sent(provider)[2].keys()
        assert not {"apiKeyId", "limit", "orderBy"} & sent(provider)[2].keys()


class TestSearch:
    def test_21_the_query_parameters(self, backend: HttpBackend, provider: Provider) -> None:
        provider.script = [json_answer({"results": [{**MEMORY, "score": 0.7}]})]
        wanted = Search("green & tea", "alice", "factual", "s1", 5, "hybrid", 2000)
        assert [(r.id, r.score) for r in backend.search(wanted)] == [("m1", 0.7)]
        assert sent(provider)[1:] == (
            "/memories/search",
            {
                "query": ["green & tea"],
                "apiKeyId": ["alice"],
                "limit": ["5"],
                "strategy": ["hybrid"],
                "maxTokens": ["2000"],
                "type": ["factual"],
                "sessionId": ["s1"],
            },
        )

    def test_22_another_endpoint(self, provider: Provider) -> None:
        provider.script = [json_answer([])]
        backend_at(provider, dialect=Dialect({"search": "/api/memory/search"})).search(Search("x"))
        assert sent(provider)[1] == "/api/memory/search"

    def test_23_options_are_sent_as_json(self, backend: HttpBackend, provider: Provider) -> None:
        provider.script = [json_answer([])]
        options: dict[str, Json] = {"rerank": True, "weights": [1, 2], "名": "茶"}
        backend.search(Search("x", options=options))
        assert json.loads(sent(provider)[2]["options"][0]) == options

    def test_more_than_was_asked_for_is_cut(self, backend: HttpBackend, provider: Provider) -> None:
        provider.script = [json_answer([MEMORY, {**MEMORY, "id": "m2"}, {"id": "no text"}])]
        assert [r.id for r in backend.search(Search("x", limit=1))] == ["m1"]


class TestCredentials:
    def test_24_a_bearer_token(self, backend: HttpBackend, provider: Provider) -> None:
        provider.script = [json_answer(MEMORY)]
        backend.get("m1")
        assert provider.requests[-1].headers["authorization"] == f"Bearer {KEY}"

    def test_25_other_headers(self, provider: Provider) -> None:
        provider.script = [json_answer(MEMORY)]
        address = Address(f"http://127.0.0.1:{provider.port}", {"X-Api-Key": "k", "X-Team": "t"})
        HttpBackend("b", "B", Rest(address, HttpClient(OPERATOR))).get("m1")
        headers = provider.requests[-1].headers
        assert (headers["x-api-key"], headers["x-team"]) == ("k", "t")
        assert "authorization" not in headers

    def test_an_address_keeps_its_headers_to_itself(self) -> None:
        assert "k1" not in repr(Address("http://x", {"Authorization": "Bearer k1"}))


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:1",
        "http://10.0.0.1",
        "http://localhost:1",
        "http://metadata.google.internal",
    ],
)
def test_a_place_that_is_not_allowed_is_never_called(url: str) -> None:
    made = HttpBackend("b", "B", Rest(Address(url), HttpClient(PUBLIC_ONLY)))
    with pytest.raises(BackendFailed) as failed:
        made.get("m1")
    assert failed.value.code == "url_blocked"


class TestContract(BackendContract):
    @pytest.fixture
    def backend(self, provider: Provider) -> MemoryBackend:
        """The default conventions, below a base path."""
        provider.respond = FakeService("/v2/brain")
        return backend_at(provider, base="/v2/brain")


class TestFaults(BackendFaultsContract):
    @pytest.fixture
    def served(self, provider: Provider) -> Served:
        """The double with the conventions."""
        provider.respond = FakeService()
        waits: list[float] = []
        headers = {"Authorization": f"Bearer {KEY}"}
        address = Address(f"http://127.0.0.1:{provider.port}", headers, 5000)
        made = HttpBackend(
            "b", "B", Rest(address, HttpClient(wait=waits.append), wait=waits.append)
        )
        hasty = Rest(replace(address, timeout_ms=300), HttpClient(), wait=waits.append)
        return Served(made, provider, lambda: HttpBackend("b", "B", hasty), waits)
