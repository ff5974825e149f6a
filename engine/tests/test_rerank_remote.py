"""Remote rerankers against a real server on loopback, with faults."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from engine.errors import RerankFailed
from engine.net.client import HttpClient, Limits
from engine.net.strict_json import parse
from engine.protocols import Reranker
from engine.rerank.remote import (
    RemoteReranker,
    RerankEndpoint,
    RerankProtocol,
    rerank_url,
    scores_of,
)
from engine.testing import fake_services
from engine.testing.contracts_rerank import TEXTS, RerankerContract, ranked
from engine.testing.fake_models import cohere_rerank, tei_rerank
from engine.testing.fake_provider import Answer, Provider, json_answer, serving
from engine.testing.fake_services import voyage_rerank

KEY = "sk-secret"
SEED, COHERE, JINA, VOYAGE, TEI = RerankProtocol
GIVEN = ranked(["a", "b", "c"])
ORDER = [candidate.passage_id for candidate, _ in GIVEN]


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def provider() -> Iterator[Provider]:
    with serving() as running:
        running.respond = cohere_rerank
        yield running


@pytest.fixture
def clock() -> Clock:
    return Clock()


Build = Callable[..., RemoteReranker]


@pytest.fixture
def build(provider: Provider, clock: Clock) -> Iterator[Build]:
    client = HttpClient(wait=lambda seconds: None)

    def made(protocol: RerankProtocol = SEED, key: str | None = KEY) -> RemoteReranker:
        base = f"http://127.0.0.1:{provider.port}"
        if protocol is SEED:
            base += "/rerank"
        endpoint = RerankEndpoint(base, "m", key, protocol)
        limits = Limits(connect_s=1.0, total_s=1.0, retries=0)
        return RemoteReranker(endpoint, client=client, limits=limits, clock=clock)

    yield made
    client.close()


@pytest.fixture
def reranker(build: Build) -> RemoteReranker:
    return build()


class TestSeedShape(RerankerContract):
    @pytest.fixture
    def reranker(self, build: Build) -> Reranker:
        return build(SEED)


class TestJinaShape(RerankerContract):
    @pytest.fixture
    def reranker(self, build: Build) -> Reranker:
        return build(JINA)


class TestVoyageShape(RerankerContract):
    @pytest.fixture
    def reranker(self, build: Build, provider: Provider) -> Reranker:
        provider.respond = voyage_rerank
        return build(VOYAGE, key=fake_services.KEY)


class TestTeiShape(RerankerContract):
    @pytest.fixture
    def reranker(self, build: Build, provider: Provider) -> Reranker:
        provider.respond = tei_rerank
        return build(TEI)


def failure(reranker: RemoteReranker) -> RerankFailed:
    with pytest.raises(RerankFailed) as caught:
        reranker.rerank("tea", GIVEN)
    assert KEY not in str(caught.value)
    assert "127.0.0.1" not in str(caught.value)
    return caught.value


def test_the_seeds_request_asks_for_every_document(
    reranker: RemoteReranker, provider: Provider
) -> None:
    reranker.rerank("tea", GIVEN)
    (request,) = provider.requests
    assert request.path == "/rerank"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.json() == {
        "model": "m",
        "query": "tea",
        "documents": ["a", "b", "c"],
        "top_n": 3,
    }


def test_voyage_is_asked_for_every_document_in_its_own_word(
    build: Build, provider: Provider
) -> None:
    provider.respond = voyage_rerank
    build(VOYAGE, key=fake_services.KEY).rerank("tea", GIVEN)
    (request,) = provider.requests
    assert request.path == "/v1/rerank"
    wanted = {"model": "m", "query": "tea", "documents": ["a", "b", "c"], "top_k": 3}
    assert request.json() == wanted


def test_tei_is_asked_in_its_own_words_and_batches(build: Build, provider: Provider) -> None:
    provider.respond = tei_rerank
    given = ranked([f"text {place}" for place in range(70)])
    found = build(TEI, key=None).rerank("text 69", given)
    assert found[0].passage_id == given[69][0].passage_id
    bodies = [json.loads(request.body) for request in provider.requests]
    assert [len(body["texts"]) for body in bodies] == [32, 32, 6]
    assert set(bodies[0]) == {"query", "texts", "truncate"}
    assert "authorization" not in provider.requests[0].headers


@pytest.mark.parametrize(
    ("base_url", "protocol", "wanted"),
    [
        ("https://r.example/rerank", SEED, "https://r.example/rerank"),
        ("https://r.example/any/way/", SEED, "https://r.example/any/way/"),
        ("https://api.cohere.com", COHERE, "https://api.cohere.com/v1/rerank"),
        ("https://api.cohere.com/v2/", COHERE, "https://api.cohere.com/v2/rerank"),
        ("https://api.jina.ai/v1/rerank", JINA, "https://api.jina.ai/v1/rerank"),
        (" http://10.0.0.5:8080/ ", TEI, "http://10.0.0.5:8080/rerank"),
        ("http://10.0.0.5:8080/rerank", TEI, "http://10.0.0.5:8080/rerank"),
    ],
)
def test_the_url_that_is_called(base_url: str, protocol: RerankProtocol, wanted: str) -> None:
    assert rerank_url(base_url, protocol) == wanted


@pytest.mark.parametrize(
    "url", ["http://169.254.169.254/rerank", "https://h/rerank?key=1", "https://u:p@h/x", "", "h"]
)
@pytest.mark.parametrize("protocol", list(RerankProtocol))
def test_a_refused_url_is_said_when_it_is_configured(url: str, protocol: RerankProtocol) -> None:
    with pytest.raises(RerankFailed) as caught:
        RemoteReranker(RerankEndpoint(url, "m", None, protocol), client=HttpClient())
    assert caught.value.code == "url_blocked"


def test_a_model_is_needed_but_for_tei() -> None:
    client = HttpClient()
    RemoteReranker(RerankEndpoint("https://h/rerank", protocol=TEI), client=client)
    with pytest.raises(RerankFailed) as caught:
        RemoteReranker(RerankEndpoint("https://h/rerank", " "), client=client)
    assert caught.value.code == "no_key"


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        pytest.param(Answer(401), "no_key", id="401"),
        pytest.param(Answer(403), "no_key", id="403"),
        pytest.param(Answer(429), "rate_limited", id="429"),
        pytest.param(Answer(500), "request_failed", id="500"),
        pytest.param(Answer(302, headers={"Location": "/x"}), "request_failed", id="redirect"),
        pytest.param(Answer(drops=True), "request_failed", id="dropped"),
        pytest.param(Answer(200, b"{", hangs=True), "timeout", id="rerank-05"),
        pytest.param(Answer(200, b"<html>"), "invalid_response", id="HTML"),
        pytest.param(json_answer({"results": []}), "invalid_response", id="rerank-02"),
        pytest.param(
            json_answer({"results": [{"index": 9, "relevance_score": 1}]}),
            "invalid_response",
            id="rerank-03",
        ),
    ],
)
@pytest.mark.parametrize("protocol", [SEED, COHERE])
def test_a_failure_has_its_kind(
    build: Build, provider: Provider, protocol: RerankProtocol, answer: Answer, code: str
) -> None:
    provider.script = [answer]
    assert failure(build(protocol)).code == code
    assert len(provider.requests) == 1


def test_three_failures_stop_the_calls_for_a_while(
    reranker: RemoteReranker, provider: Provider, clock: Clock
) -> None:
    provider.script = [Answer(401)] * 3
    for _ in range(4):
        assert failure(reranker).code == "no_key"
    assert not reranker.health().available
    assert len(provider.requests) == 3
    clock.now += 30
    assert len(reranker.rerank("tea", GIVEN)) == 3


def test_health_asks_really_and_trusts_a_success_for_a_minute(
    reranker: RemoteReranker, provider: Provider, clock: Clock
) -> None:
    assert reranker.health().available
    assert reranker.health().available
    assert len(provider.requests) == 1
    clock.now += 61
    provider.script = [Answer(429)]
    health = reranker.health()
    assert (health.available, health.detail["code"]) == (False, "rate_limited")


def scores(protocol: RerankProtocol, answer: object, count: int = 3) -> list[float] | str:
    try:
        return scores_of(parse(json.dumps(answer).encode()), protocol=protocol, count=count)
    except RerankFailed as error:
        return error.code


def listed(*pairs: tuple[object, object], field: str = "relevance_score") -> list[object]:
    return [{"index": index, field: score} for index, score in pairs]


@pytest.mark.parametrize(
    ("pairs", "lenient"),
    [
        pytest.param([(0, 0.9), (1, 0.5)], [0.9, 0.5, 0.5], id="rerank_answer-08"),
        pytest.param([(2, 0.9)], [0.9, 0.9, 0.9], id="only one"),
        pytest.param([(0, 0.9), (0, 0.8), (1, 0.5)], [0.9, 0.5, 0.5], id="rerank_answer-12"),
        pytest.param(
            [(0, 0.9), (1, 0.8), (2, 0.5), (2, 0.4)], [0.9, 0.8, 0.5], id="rerank_answer-13"
        ),
        pytest.param([(0, 0.9), (1, 0.8), (3, 0.5)], [0.9, 0.8, 0.8], id="rerank_answer-14"),
        pytest.param([(-1, 0.9), (1, 0.8), (0, 0.5)], [0.5, 0.8, 0.5], id="negative index"),
    ],
)
def test_half_an_answer_fails_in_the_seeds_shape_and_is_completed_in_others(
    pairs: list[tuple[object, object]], lenient: list[float]
) -> None:
    answer = {"results": listed(*pairs)}
    assert scores(SEED, answer) == "invalid_response"
    assert scores(COHERE, answer) == scores(JINA, answer) == pytest.approx(lenient)
    assert scores(TEI, listed(*pairs, field="score")) == pytest.approx(lenient)


@pytest.mark.parametrize(
    "pair", [("2", 1), (True, 1), (1.0, 1), (None, 1), (2, "1"), (2, None), (2, True), (2, 10**400)]
)
def test_a_wrong_item_fails_everywhere(pair: tuple[object, object]) -> None:
    answer = {"results": listed((0, 0.9), (1, 0.8), pair)}
    assert scores(SEED, answer) == scores(JINA, answer) == "invalid_response"
    assert scores(TEI, listed((0, 0.9), (1, 0.8), pair, field="score")) == "invalid_response"


@pytest.mark.parametrize("protocol", list(RerankProtocol))
@pytest.mark.parametrize("answer", [None, 7, [], {}, {"results": {}}, {"data": []}, [[1, 2]]])
def test_a_wrong_answer_fails(protocol: RerankProtocol, answer: object) -> None:
    assert scores(protocol, answer) == "invalid_response"


def test_logits_and_integers_are_scores_and_ties_keep_their_order(
    reranker: RemoteReranker, provider: Provider
) -> None:
    provider.script = [json_answer({"results": listed((2, -11), (1, 4.7), (0, -11))})]
    found = reranker.rerank("tea", GIVEN)
    assert [c.passage_id for c in found] == [ORDER[1], ORDER[0], ORDER[2]]
    assert [c.score for c in found] == [4.7, -11.0, -11.0]


def test_what_a_service_leaves_out_comes_last_in_its_order(
    build: Build, provider: Provider
) -> None:
    given = ranked(TEXTS)
    provider.script = [json_answer({"results": listed((4, 0.9), (2, 0.3))})]
    found = build(COHERE).rerank("tea", given)
    wanted = [given[place][0].passage_id for place in (4, 2, 0, 1, 3)]
    assert [c.passage_id for c in found] == wanted
