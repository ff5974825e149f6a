"""The OpenAI-compatible source against a real server on loopback, with faults."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pytest

from engine.embed.remote import Endpoint, RemoteSource, endpoint_url
from engine.embed.remote_answer import vectors
from engine.errors import EmbeddingFailed
from engine.net.client import HttpClient
from engine.net.strict_json import parse
from engine.protocols import EmbeddingSource
from engine.testing.contracts_embed import EmbeddingSourceContract
from engine.testing.fake_models import openai_embeddings
from engine.testing.fake_provider import Answer, Provider, json_answer, serving
from engine.types import Purpose

KEY = "sk-secret"


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def provider() -> Iterator[Provider]:
    with serving() as running:
        yield running


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def source(provider: Provider, clock: Clock) -> Iterator[RemoteSource]:
    client = HttpClient(wait=lambda seconds: None)
    endpoint = Endpoint(f"http://127.0.0.1:{provider.port}/v1/", "m", KEY)
    yield RemoteSource(endpoint, template="t1", client=client, clock=clock)
    client.close()


def failure(source: RemoteSource, purpose: Purpose = Purpose.QUERY) -> EmbeddingFailed:
    with pytest.raises(EmbeddingFailed) as caught:
        source.embed(["tea"], purpose=purpose)
    assert KEY not in str(caught.value)
    assert "127.0.0.1" not in str(caught.value)
    return caught.value


def test_a_request_is_minimal_and_carries_the_key(source: RemoteSource, provider: Provider) -> None:
    source.embed(["tea", "字"], purpose=Purpose.DOCUMENT)
    (request,) = provider.requests
    assert request.path == "/v1/embeddings"
    assert request.json() == {"model": "m", "input": ["tea", "字"]}
    assert request.headers["authorization"] == f"Bearer {KEY}"


def test_without_a_key_no_authorization_is_sent(provider: Provider) -> None:
    endpoint = Endpoint(f"http://127.0.0.1:{provider.port}/v1", "m")
    RemoteSource(endpoint, template="t1", client=HttpClient()).embed(["a"], purpose=Purpose.QUERY)
    assert "authorization" not in provider.requests[0].headers


def test_vectors_follow_the_index_and_have_length_one(source: RemoteSource) -> None:
    rows = source.embed(["1234", "", "1"], purpose=Purpose.DOCUMENT)
    assert rows.dtype == np.float32
    assert rows[0].tolist() == pytest.approx([0.6, 0.8, 0.0])
    assert rows[1, 1] == rows[2, 1]


def test_many_texts_go_in_batches_of_32(source: RemoteSource, provider: Provider) -> None:
    texts = [f"{place:03}" for place in range(70)]
    assert source.embed(texts, purpose=Purpose.DOCUMENT).shape == (70, 3)
    sizes = [len(json.loads(request.body)["input"]) for request in provider.requests]
    assert sizes == [32, 32, 6]


def test_embedding_resolve_08_the_first_answer_tells_the_dimension(source: RemoteSource) -> None:
    with pytest.raises(EmbeddingFailed):
        _ = source.signature
    source.embed(["a"], purpose=Purpose.QUERY)
    signature = source.signature
    assert (signature.source, signature.model, signature.dim) == ("remote", "m", 3)
    assert signature.revision.endswith("+t1")
    assert "127.0.0.1" not in str(signature)


def test_another_url_is_another_signature(provider: Provider) -> None:
    first, second = (
        RemoteSource(Endpoint(base, "m"), template="t1", client=HttpClient(), dim=3).signature
        for base in ("http://127.0.0.1:1/v1", "http://127.0.0.1:2/v1")
    )
    assert first != second


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        pytest.param(Answer(401), "no_key", id="401"),
        pytest.param(Answer(403), "no_key", id="embedding_error-02"),
        pytest.param(Answer(429), "rate_limited", id="embedding_error-03"),
        pytest.param(Answer(500), "request_failed", id="embedding_error-04"),
        pytest.param(Answer(drops=True), "request_failed", id="embedding_error-05"),
        pytest.param(Answer(200, b"{"), "invalid_response", id="bad JSON"),
        pytest.param(json_answer({"data": []}), "invalid_response", id="wrong count"),
        pytest.param(
            Answer(200, b'{"data":[{"index":0,"embedding":[NaN,1]}]}'), "invalid_response", id="NaN"
        ),
    ],
)
def test_a_failure_has_its_code(
    source: RemoteSource, provider: Provider, answer: Answer, code: str
) -> None:
    provider.script = [answer]
    assert failure(source).code == code
    assert len(provider.requests) == 1


def test_a_document_is_tried_again(source: RemoteSource, provider: Provider) -> None:
    provider.script = [Answer(429, headers={"Retry-After": "1"}), Answer(503)]
    assert source.embed(["tea"], purpose=Purpose.DOCUMENT).shape == (1, 3)
    assert len(provider.requests) == 3


def test_vectors_of_another_dimension_are_refused(source: RemoteSource, provider: Provider) -> None:
    source.embed(["a"], purpose=Purpose.QUERY)
    provider.script = [json_answer({"data": [{"index": 0, "embedding": [1, 2]}]})]
    assert failure(source).code == "invalid_response"


def test_three_failures_stop_the_calls_for_a_while(
    source: RemoteSource, provider: Provider, clock: Clock
) -> None:
    provider.script = [Answer(401), Answer(500), Answer(429), Answer(500)]
    for _ in range(3):
        failure(source)
    assert failure(source).code == "rate_limited"
    assert not source.health().available
    assert len(provider.requests) == 3
    clock.now += 30
    assert failure(source).code == "request_failed"
    assert failure(source).code == "request_failed"
    assert len(provider.requests) == 4
    clock.now += 30
    assert source.embed(["tea"], purpose=Purpose.QUERY).shape == (1, 3)
    assert source.health().available


@pytest.mark.parametrize(
    ("base_url", "model", "wanted"),
    [
        ("http://10.0.0.5:11434/v1", "bge-m3", "http://10.0.0.5:11434/v1/embeddings"),
        ("http://10.0.0.5:11434/v1/embeddings/", "m", "http://10.0.0.5:11434/v1/embeddings"),
        (" http://10.0.0.5/v1 ", " m ", "http://10.0.0.5/v1/embeddings"),
        ("", "", None),
        (None, None, None),
    ],
)
def test_embedding_custom_endpoint(
    base_url: str | None, model: str | None, wanted: str | None
) -> None:
    assert endpoint_url(base_url, model) == wanted


def test_an_operation_is_called_exactly_as_given() -> None:
    assert endpoint_url("https://h/any/way/", "m", is_operation=True) == "https://h/any/way/"


@pytest.mark.parametrize("key", ["sk-ключ", "sk-a\nb", "sk-\x00"])
def test_a_key_that_cannot_be_sent_is_no_key(provider: Provider, key: str) -> None:
    endpoint = Endpoint(f"http://127.0.0.1:{provider.port}/v1", "m", key)
    with pytest.raises(EmbeddingFailed) as caught:
        RemoteSource(endpoint, template="t1", client=HttpClient()).embed(
            ["a"], purpose=Purpose.QUERY
        )
    assert (caught.value.code, provider.requests) == ("no_key", [])


def test_dimensions_are_sent_and_checked(provider: Provider) -> None:
    provider.respond = openai_embeddings
    base = f"http://127.0.0.1:{provider.port}/v1"
    source = RemoteSource(Endpoint(base, "m", dimensions=16), template="t1", client=HttpClient())
    assert source.signature.dim == 16
    assert source.embed(["a"], purpose=Purpose.QUERY).shape == (1, 16)
    assert provider.requests[0].json()["dimensions"] == 16
    provider.script = [json_answer({"data": [{"index": 0, "embedding": [1, 2]}]})]
    with pytest.raises(EmbeddingFailed) as caught:
        source.embed(["a"], purpose=Purpose.QUERY)
    assert caught.value.code == "invalid_response"


class TestCompatibleSource(EmbeddingSourceContract):
    @pytest.fixture
    def source(self, provider: Provider) -> Iterator[EmbeddingSource]:
        provider.respond = openai_embeddings
        client = HttpClient()
        endpoint = Endpoint(f"http://127.0.0.1:{provider.port}/v1", "m")
        yield RemoteSource(endpoint, template="t1", client=client, dim=64)
        client.close()


@pytest.mark.parametrize(
    ("base_url", "model"),
    [
        pytest.param("http://10.0.0.5/v1", "", id="embedding_custom_endpoint-03"),
        pytest.param("", "m", id="embedding_custom_endpoint-04"),
        pytest.param("http://169.254.169.254/v1", "m", id="embedding_custom_endpoint-05"),
        pytest.param("http://h/v1?a=1", "m", id="embedding_custom_endpoint-06"),
    ],
)
def test_a_bad_custom_endpoint_is_refused(base_url: str, model: str) -> None:
    with pytest.raises(EmbeddingFailed) as caught:
        endpoint_url(base_url, model)
    assert caught.value.code == "url_blocked"


@pytest.mark.parametrize(
    "answer",
    [
        {"data": [{"index": 0, "embedding": [3, 4]}, {"index": 0, "embedding": [1, 0]}]},
        {"data": [{"index": 1, "embedding": [3, 4]}, {"index": 2, "embedding": [1, 0]}]},
        {"data": [{"index": -1, "embedding": [3, 4]}, {"index": 0, "embedding": [1, 0]}]},
        {"data": [{"index": 0.0, "embedding": [3, 4]}, {"index": 1, "embedding": [1, 0]}]},
        {"data": [{"index": False, "embedding": [3, 4]}, {"index": True, "embedding": [1, 0]}]},
        {"data": [{"embedding": [3, 4]}, {"embedding": [1, 0]}]},
        {"data": [{"index": 0, "embedding": [3, 4]}, {"index": 1, "embedding": [1]}]},
        {"data": [{"index": 0, "embedding": [3, 4]}, {"index": 1, "embedding": []}]},
        {"data": [{"index": 0, "embedding": [3, 4]}, {"index": 1, "embedding": [0, 0]}]},
        {"data": [{"index": 0, "embedding": [3, 4]}, {"index": 1, "embedding": ["1", 0]}]},
        {"data": [{"index": 0, "embedding": [3, 4]}, {"index": 1, "embedding": [True, 0]}]},
        {"data": [{"index": 0, "embedding": [3, 4]}, {"index": 1, "embedding": [None, 0]}]},
        {"data": [{"index": 0, "embedding": [3, 4]}, {"index": 1, "embedding": [10**400, 0]}]},
        {"data": [{"index": 0, "embedding": [3, 4]}, {"index": 1, "embedding": "AACAPwAAAEA="}]},
        {"data": [{"index": 0, "embedding": [3, 4]}, 7]},
        {"data": [{"index": 0, "embedding": [3, 4]}]},
        {"data": {"0": [1]}},
        {"embeddings": [[1, 2], [3, 4]]},
        [[1, 2], [3, 4]],
        None,
    ],
)
def test_a_wrong_embedding_answer_is_refused(answer: object) -> None:
    with pytest.raises(EmbeddingFailed) as caught:
        vectors(parse(json.dumps(answer).encode()), count=2, dim=2)
    assert caught.value.code == "invalid_response"


def test_embedding_answer_02_the_order_follows_the_index() -> None:
    answer = b'{"data":[{"index":1,"embedding":[0,2]},{"index":0,"embedding":[3,4]}]}'
    rows = vectors(parse(answer), count=2, dim=2)
    assert rows.tolist() == [pytest.approx([0.6, 0.8]), pytest.approx([0.0, 1.0])]


def test_values_beyond_float32_still_have_a_direction() -> None:
    answer = b'{"data":[{"index":0,"embedding":[3e60,4e60]}]}'
    assert vectors(parse(answer), count=1, dim=None).tolist() == [pytest.approx([0.6, 0.8])]
