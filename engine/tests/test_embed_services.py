"""Cohere, Voyage, Jina and Azure against faithful doubles on loopback, with faults."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from engine.embed.endpoint import EmbeddingProtocol, Endpoint
from engine.embed.remote import RemoteSource, endpoint_url
from engine.errors import EmbeddingFailed
from engine.net.client import HttpClient
from engine.protocols import EmbeddingSource
from engine.testing import fake_services
from engine.testing.contracts_embed import EmbeddingSourceContract
from engine.testing.fake_models import DIM, Respond
from engine.testing.fake_provider import Answer, Provider, Request, json_answer, serving
from engine.testing.fake_services import KEY
from engine.types import Purpose


@dataclass(frozen=True, slots=True)
class Service:
    """One service: its double, where it is called, and what tells a query from a document."""

    protocol: EmbeddingProtocol
    respond: Respond
    path: str
    base: str
    model: str
    texts: str
    dimension: str
    said: dict[Purpose, dict[str, Any]]

    def answer(self, rows: list[Any]) -> Answer:
        """An answer of these vectors in the service's shape."""
        if self.protocol is EmbeddingProtocol.COHERE:
            return json_answer({"embeddings": {"float": rows}})
        return json_answer({"data": [{"index": n, "embedding": r} for n, r in enumerate(rows)]})


def _said(field: str, query: str, document: str) -> dict[Purpose, dict[str, Any]]:
    return {Purpose.QUERY: {field: query}, Purpose.DOCUMENT: {field: document}}


SERVICES = {
    "cohere": Service(
        EmbeddingProtocol.COHERE,
        fake_services.cohere_embeddings,
        "/v2/embed",
        "",
        "embed-v4.0",
        "texts",
        "output_dimension",
        {
            purpose: {**said, "embedding_types": ["float"]}
            for purpose, said in _said("input_type", "search_query", "search_document").items()
        },
    ),
    "voyage": Service(
        EmbeddingProtocol.VOYAGE,
        fake_services.voyage_embeddings,
        "/v1/embeddings",
        "/v1",
        "voyage-4",
        "input",
        "output_dimension",
        _said("input_type", "query", "document"),
    ),
    "jina": Service(
        EmbeddingProtocol.JINA,
        fake_services.jina_embeddings,
        "/v1/embeddings",
        "/v1",
        "jina-embeddings-v3",
        "input",
        "dimensions",
        _said("task", "retrieval.query", "retrieval.passage"),
    ),
    "azure": Service(
        EmbeddingProtocol.AZURE,
        fake_services.azure_embeddings,
        "/openai/v1/embeddings",
        "/openai/v1",
        "text-embedding-3-small",
        "input",
        "dimensions",
        {Purpose.QUERY: {}, Purpose.DOCUMENT: {}},
    ),
}
Build = Callable[..., RemoteSource]


@pytest.fixture(params=list(SERVICES))
def service(request: pytest.FixtureRequest) -> Service:
    return SERVICES[request.param]


@pytest.fixture
def provider(service: Service) -> Iterator[Provider]:
    with serving() as running:
        running.respond = service.respond
        yield running


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def build(service: Service, provider: Provider, waits: list[float]) -> Iterator[Build]:
    client = HttpClient(wait=waits.append)

    def made(*, dim: int | None = DIM, **fields: Any) -> RemoteSource:
        values = {"api_key": KEY, "model": service.model, "protocol": service.protocol, **fields}
        base = f"http://127.0.0.1:{provider.port}{service.base}"
        return RemoteSource(Endpoint(base, **values), template="t1", client=client, dim=dim)

    yield made
    client.close()


class TestServices(EmbeddingSourceContract):
    @pytest.fixture
    def source(self, build: Build) -> EmbeddingSource:
        return build()


@pytest.mark.parametrize("purpose", list(Purpose))
def test_the_service_is_told_what_a_text_is_for(
    service: Service, build: Build, provider: Provider, purpose: Purpose
) -> None:
    build().embed(["tea", "字"], purpose=purpose)
    (request,) = provider.requests
    assert request.path == service.path
    wanted = {"model": service.model, service.texts: ["tea", "字"], **service.said[purpose]}
    assert request.json() == wanted


def test_a_shorter_vector_is_asked_for_in_the_services_field(
    service: Service, build: Build, provider: Provider
) -> None:
    rows = build(dim=None, dimensions=16).embed(["tea"], purpose=Purpose.QUERY)
    assert rows.shape == (1, 16)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1.0)
    assert provider.requests[0].json()[service.dimension] == 16


def test_a_key_that_is_wrong_or_missing_is_told(build: Build) -> None:
    for key in ("other", None):
        with pytest.raises(EmbeddingFailed) as caught:
            build(api_key=key).embed(["tea"], purpose=Purpose.QUERY)
        assert caught.value.code == "no_key"
        assert "other" not in str(caught.value)


def test_a_busy_service_is_asked_again_when_it_says(
    build: Build, provider: Provider, waits: list[float]
) -> None:
    provider.script = [Answer(429, b"{}", {"Retry-After": "3"})]
    assert build().embed(["tea"], purpose=Purpose.DOCUMENT).shape == (1, DIM)
    assert waits == [3.0]


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([], id="too few"),
        pytest.param([[1.0] * DIM] * 3, id="too many"),
        pytest.param([[1.0] * DIM, [1.0] * (DIM - 1)], id="ragged"),
        pytest.param([[1.0] * 8] * 2, id="another dimension"),
        pytest.param([[0.0] * DIM] * 2, id="zero"),
        pytest.param([[True] * DIM] * 2, id="no numbers"),
        pytest.param([None, [1.0] * DIM], id="no vector"),
    ],
)
def test_an_answer_that_cannot_be_used_is_refused(
    service: Service, build: Build, provider: Provider, rows: list[Any]
) -> None:
    provider.script = [service.answer(rows)]
    with pytest.raises(EmbeddingFailed) as caught:
        build().embed(["tea", "milk"], purpose=Purpose.QUERY)
    assert caught.value.code == "invalid_response"


def test_not_a_number_and_an_endless_answer_are_refused(
    service: Service, build: Build, provider: Provider
) -> None:
    fine = service.answer([[1.0] * DIM]).body
    for body in (fine.replace(b"1.0", b"NaN", 1), fine.replace(b"1.0", b"1e999", 1)):
        provider.script = [Answer(200, body)]
        with pytest.raises(EmbeddingFailed) as caught:
            build().embed(["tea"], purpose=Purpose.QUERY)
        assert caught.value.code == "invalid_response"
    provider.script = [Answer(200, b" " * (33 << 20))]
    with pytest.raises(EmbeddingFailed) as caught:
        build().embed(["tea"], purpose=Purpose.QUERY)
    assert caught.value.code == "invalid_response"


def _sizes(service: Service, provider: Provider) -> list[int]:
    return [len(json.loads(request.body)[service.texts]) for request in provider.requests]


def test_requests_stay_within_the_limits_of_the_service(
    service: Service, build: Build, provider: Provider
) -> None:
    texts = [f"a text that is {n:03} of its kind" for n in range(70)]
    build(batch_texts=20).embed(texts, purpose=Purpose.DOCUMENT)
    assert _sizes(service, provider) == [20, 20, 20, 10]
    provider.requests.clear()
    rows = build(batch_tokens=40).embed(texts[:7], purpose=Purpose.DOCUMENT)
    assert _sizes(service, provider) == [3, 3, 1]
    assert np.allclose(rows, build().embed(texts[:7], purpose=Purpose.DOCUMENT), atol=1e-6)


def test_a_request_that_is_too_large_is_sent_in_halves(
    service: Service, build: Build, provider: Provider
) -> None:
    def respond(request: Request) -> Answer:
        is_large = len(json.loads(request.body)[service.texts]) > 2
        return json_answer({"detail": "too large"}, 413) if is_large else service.respond(request)

    texts = ["one", "two", "three", "four", "five"]
    wanted = build().embed(texts, purpose=Purpose.DOCUMENT)
    provider.respond = respond
    assert np.allclose(build().embed(texts, purpose=Purpose.DOCUMENT), wanted, atol=1e-6)
    provider.script = [json_answer({}, 413)]
    with pytest.raises(EmbeddingFailed) as caught:
        build().embed(["one"], purpose=Purpose.DOCUMENT)
    assert caught.value.code == "request_failed"


def test_another_key_leaves_the_signature_as_it_is(build: Build) -> None:
    assert build(api_key="other").signature == build().signature


@pytest.mark.parametrize("service", [SERVICES["jina"]], ids=["jina"])
def test_an_older_model_of_jina_is_given_no_task(build: Build, provider: Provider) -> None:
    build(model="jina-embeddings-v2-base-en").embed(["tea"], purpose=Purpose.QUERY)
    assert "task" not in provider.requests[0].json()


@pytest.mark.parametrize(
    ("protocol", "base", "wanted"),
    [
        ("cohere", "https://api.cohere.com", "https://api.cohere.com/v2/embed"),
        ("cohere", "https://api.cohere.com/v2/", "https://api.cohere.com/v2/embed"),
        ("cohere", "https://p.example/cohere/v2/embed", "https://p.example/cohere/v2/embed"),
        ("voyage", "https://api.voyageai.com/v1", "https://api.voyageai.com/v1/embeddings"),
        ("jina", "https://api.jina.ai/v1/embeddings", "https://api.jina.ai/v1/embeddings"),
        ("azure", "https://r.example/openai/v1", "https://r.example/openai/v1/embeddings"),
    ],
)
def test_the_url_that_is_called(protocol: str, base: str, wanted: str) -> None:
    assert endpoint_url(base, "m", protocol=EmbeddingProtocol(protocol)) == wanted
