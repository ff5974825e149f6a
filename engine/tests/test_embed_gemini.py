"""The Gemini protocol against a real server on loopback, with faults."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from engine.embed.remote import EmbeddingProtocol, Endpoint, RemoteSource, endpoint_url
from engine.embed.remote_answer import gemini_vector, gemini_vectors
from engine.embed.remote_prompts import prompts_for
from engine.errors import EmbeddingFailed
from engine.net.client import HttpClient
from engine.net.strict_json import parse
from engine.protocols import EmbeddingSource
from engine.testing.contracts_embed import EmbeddingSourceContract
from engine.testing.fake_models import gemini_embeddings, google_error
from engine.testing.fake_provider import Answer, Provider, serving
from engine.types import Purpose

KEY = "AIza-secret"
GEMINI = EmbeddingProtocol.GEMINI
MODEL = "gemini-embedding-001"
SINGLE = f"/v1beta/models/{MODEL}:embedContent"
Build = Callable[..., RemoteSource]


@pytest.fixture
def provider() -> Iterator[Provider]:
    with serving() as running:
        running.respond = gemini_embeddings
        yield running


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def build(provider: Provider, waits: list[float]) -> Iterator[Build]:
    client = HttpClient(wait=waits.append)

    def made(
        path: str = "/v1beta",
        *,
        model: str = MODEL,
        key: str | None = KEY,
        dim: int | None = None,
        dimensions: int | None = None,
    ) -> RemoteSource:
        base = f"http://127.0.0.1:{provider.port}{path}"
        endpoint = Endpoint(base, model, key, GEMINI, dimensions)
        return RemoteSource(endpoint, template="t1", client=client, dim=dim)

    yield made
    client.close()


class TestGeminiInBatches(EmbeddingSourceContract):
    @pytest.fixture
    def source(self, build: Build) -> EmbeddingSource:
        return build(dim=64)


class TestGeminiOneByOne(EmbeddingSourceContract):
    @pytest.fixture
    def source(self, build: Build) -> EmbeddingSource:
        return build(SINGLE, dim=64)


def test_a_batch_carries_the_task_of_each_text(build: Build, provider: Provider) -> None:
    rows = build().embed(["tea", "字"], purpose=Purpose.DOCUMENT)
    assert rows.shape == (2, 64)
    (request,) = provider.requests
    assert request.path == f"/v1beta/models/{MODEL}:batchEmbedContents"
    assert request.headers["x-goog-api-key"] == KEY
    assert "authorization" not in request.headers
    assert request.json() == {
        "requests": [
            {
                "model": f"models/{MODEL}",
                "content": {"parts": [{"text": text}]},
                "taskType": "RETRIEVAL_DOCUMENT",
            }
            for text in ("tea", "字")
        ]
    }


def test_the_single_operation_is_called_once_for_each_text(
    build: Build, provider: Provider
) -> None:
    source = build(SINGLE, dimensions=16)
    rows = source.embed(["tea", "milk"], purpose=Purpose.QUERY)
    assert rows.shape == (2, 16)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1.0)
    assert [request.path for request in provider.requests] == [SINGLE, SINGLE]
    assert provider.requests[1].json() == {
        "model": f"models/{MODEL}",
        "content": {"parts": [{"text": "milk"}]},
        "taskType": "RETRIEVAL_QUERY",
        "outputDimensionality": 16,
    }


def test_many_texts_go_in_batches_of_32(build: Build, provider: Provider) -> None:
    assert build().embed([f"t{i}" for i in range(70)], purpose=Purpose.DOCUMENT).shape == (70, 64)
    sizes = [len(json.loads(request.body)["requests"]) for request in provider.requests]
    assert sizes == [32, 32, 6]


def test_the_second_generation_reads_a_prompt_instead_of_a_task(
    build: Build, provider: Provider
) -> None:
    source = build(model="models/gemini-embedding-2")
    source.embed(["tea"], purpose=Purpose.QUERY)
    source.embed(["tea"], purpose=Purpose.DOCUMENT)
    sent = [json.loads(request.body)["requests"][0] for request in provider.requests]
    assert [one["content"]["parts"][0]["text"] for one in sent] == [
        "task: search result | query: tea",
        "title: none | text: tea",
    ]
    assert all("taskType" not in one for one in sent)
    assert sent[0]["model"] == "models/gemini-embedding-2"


def test_the_first_success_tells_the_dimension(build: Build) -> None:
    source = build()
    with pytest.raises(EmbeddingFailed):
        _ = source.signature
    source.embed(["a"], purpose=Purpose.QUERY)
    assert source.signature.dim == 64


def test_what_decides_the_vectors_decides_the_signature(build: Build) -> None:
    signatures = {
        build(dim=64).signature,
        build(dimensions=32).signature,
        build(SINGLE, dim=64).signature,
        build(dim=64, model="gemini-embedding-2").signature,
    }
    assert len(signatures) == 4
    assert build(dim=64).signature in signatures


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        pytest.param(google_error(400, reason="API_KEY_INVALID"), "no_key", id="unknown key"),
        pytest.param(google_error(403, "PERMISSION_DENIED"), "no_key", id="embedding_error-02"),
        pytest.param(google_error(400), "request_failed", id="bad request"),
        pytest.param(
            google_error(429, "RESOURCE_EXHAUSTED"), "rate_limited", id="embedding_error-03"
        ),
        pytest.param(google_error(500, "INTERNAL"), "request_failed", id="embedding_error-04"),
        pytest.param(Answer(drops=True), "request_failed", id="embedding_error-05"),
        pytest.param(Answer(200, b'{"embeddings": []}'), "invalid_response", id="too few"),
    ],
)
def test_a_failure_has_its_code(
    build: Build, provider: Provider, answer: Answer, code: str
) -> None:
    provider.script = [answer]
    with pytest.raises(EmbeddingFailed) as caught:
        build().embed(["tea"], purpose=Purpose.QUERY)
    assert (caught.value.code, len(provider.requests)) == (code, 1)
    assert KEY not in str(caught.value)


def test_without_a_key_the_server_says_so(build: Build) -> None:
    with pytest.raises(EmbeddingFailed) as caught:
        build(key=None).embed(["tea"], purpose=Purpose.QUERY)
    assert caught.value.code == "no_key"


def test_a_used_up_quota_says_in_its_body_how_long_to_wait(
    build: Build, provider: Provider, waits: list[float]
) -> None:
    quota = google_error(429, "RESOURCE_EXHAUSTED", retryDelay="4.2s")
    far = google_error(429, "RESOURCE_EXHAUSTED", retryDelay="86399s")
    provider.script = [quota, far]
    assert build().embed(["tea"], purpose=Purpose.DOCUMENT).shape == (1, 64)
    assert waits == [5.0, 30.0]


@pytest.mark.parametrize(
    ("base_url", "wanted"),
    [
        ("https://g.example/v1beta", f"https://g.example/v1beta/models/{MODEL}:batchEmbedContents"),
        (
            "https://g.example/v1beta/",
            f"https://g.example/v1beta/models/{MODEL}:batchEmbedContents",
        ),
        (f"https://g.example{SINGLE}", f"https://g.example{SINGLE}"),
        ("https://g.example/x:batchEmbedContents", "https://g.example/x:batchEmbedContents"),
    ],
)
def test_the_url_that_is_called(base_url: str, wanted: str) -> None:
    assert endpoint_url(base_url, MODEL, protocol=GEMINI) == wanted


def test_a_model_name_that_breaks_the_url_is_refused() -> None:
    with pytest.raises(EmbeddingFailed) as caught:
        endpoint_url("https://g.example/v1beta", "m?key=1", protocol=GEMINI)
    assert caught.value.code == "url_blocked"


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param({"embedding": {"values": [3, 4, 5]}}, id="embedding_answer-19"),
        pytest.param({"embedding": {}}, id="embedding_answer-20"),
        pytest.param({"embeddings": [{"values": [3, 4]}]}, id="embedding_answer-21"),
        pytest.param({"embedding": [3, 4]}, id="a bare list"),
        pytest.param({"embedding": {"values": [0, 0]}}, id="zero"),
        pytest.param({"embedding": {"values": ["3", 4]}}, id="texts"),
        pytest.param([], id="list"),
    ],
)
def test_a_wrong_single_answer_is_refused(answer: object) -> None:
    with pytest.raises(EmbeddingFailed) as caught:
        gemini_vector(parse(json.dumps(answer).encode()), count=1, dim=2)
    assert caught.value.code == "invalid_response"


@pytest.mark.parametrize(
    "answer",
    [
        {"embeddings": [{"values": [3, 4]}]},
        {"embeddings": [{"values": [3, 4]}, {"values": [3]}]},
        {"embeddings": [{"values": [3, 4]}, {}]},
        {"embeddings": {"values": [3, 4]}},
        {"embedding": {"values": [3, 4]}},
        None,
    ],
)
def test_a_wrong_batch_answer_is_refused(answer: object) -> None:
    with pytest.raises(EmbeddingFailed) as caught:
        gemini_vectors(parse(json.dumps(answer).encode()), count=2, dim=2)
    assert caught.value.code == "invalid_response"


@pytest.mark.parametrize(
    ("model", "query", "document"),
    [
        ("bge-m3", "tea", "tea"),
        ("text-embedding-3-small", "tea", "tea"),
        ("intfloat/multilingual-e5-large", "query: tea", "passage: tea"),
        ("e5-small-v2", "query: tea", "passage: tea"),
        ("nomic-embed-text:v1.5", "search_query: tea", "search_document: tea"),
        ("embeddinggemma:300m", "task: search result | query: tea", "title: none | text: tea"),
        ("gemini-embedding-001", "tea", "tea"),
        ("BAAI/bge-base-zh-v1.5", "为这个句子生成表示以用于检索相关文章：tea", "tea"),
        ("snowflake-arctic-embed2", "query: tea", "tea"),
        ("cl-nagoya/ruri-v3-310m", "検索クエリ: tea", "検索文書: tea"),
    ],
)
def test_the_prompt_follows_the_family_of_the_model(model: str, query: str, document: str) -> None:
    prompts = prompts_for(model)
    assert prompts.apply("tea", purpose=Purpose.QUERY) == query
    assert prompts.apply("tea", purpose=Purpose.DOCUMENT) == document
