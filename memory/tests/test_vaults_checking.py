"""Trying the services of vaults: they are really asked, and each fault has its own code."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.testing.fake_models import (
    cohere_rerank,
    gemini_embeddings,
    google_error,
    openai_embeddings,
)
from engine.testing.fake_provider import Answer, Provider, Request, json_answer
from engine.testing.fake_writers import gemini_generate, openai_chat
from memory.errors import Forbidden, NotFound
from memory.principal import Principal
from memory.services.vaults import checking, choosing
from memory.tests.vault_lab import EMBEDDING, KEY, filled, lab, running
from memory.tests.vaults import REFUNDS, configure, sent, service
from memory.vault_services import ServiceName

pytestmark = pytest.mark.django_db(transaction=True)
Respond = Callable[[Request], Answer]
WRITTEN = '{"answer": "Green [S1].", "citations": ["S1"]}'
GENERATION = {"generationProviderModel": "lab/writer"}
RERANK = {"rerankProviderModel": "lab/ranker"}


@pytest.fixture
def server(settings: Any, tmp_path: Path) -> Iterator[Provider]:
    with running(settings, tmp_path) as one:
        yield one


@pytest.mark.parametrize(
    ("name", "kind", "path", "choice", "respond", "dimensions"),
    [
        ("embedding", "compatible", "/v1", EMBEDDING, openai_embeddings, 64),
        ("embedding", "gemini", "/v1beta", EMBEDDING, gemini_embeddings, 64),
        ("generation", "compatible", "/v1", GENERATION, openai_chat(WRITTEN), None),
        ("generation", "gemini", "/v1beta", GENERATION, gemini_generate(WRITTEN), None),
        ("rerank", "compatible", "/v1", RERANK, cohere_rerank, None),
    ],
)
def test_a_check_asks_the_service_once_and_sends_nothing_of_a_vault(
    name: ServiceName,
    kind: str,
    path: str,
    choice: dict[str, str],
    respond: Respond,
    dimensions: int | None,
    server: Provider,
    alice: Principal,
    manager: Principal,
) -> None:
    filled(alice)
    lab(server, kind, path)
    server.respond = respond
    choosing.update(manager, choice)
    done = checking.check(manager, name)
    assert (done.ok, done.code, done.dimensions) == (True, "", dimensions)
    assert done.latency_ms > 0
    assert done.host == f"127.0.0.1:{server.port}"
    assert len(server.requests) == 1
    assert not any(word in sent(server) for word in (REFUNDS, "Refund", "parcels"))


INVALID = ("embedding_invalid_response", "invalid_response")
LENGTHS = json_answer({"data": [{"index": 0, "embedding": [1.0, 0.0]}]})


@pytest.mark.parametrize(
    ("answer", "code", "reason", "status"),
    [
        (json_answer({"error": {"message": "No."}}, 401), "auth_failed", "auth_failed", 401),
        (google_error(429, "RESOURCE_EXHAUSTED", retryDelay="9s"), *["rate_limited"] * 2, 429),
        (json_answer({"error": {}}, 500), "upstream_error", "upstream_error", 500),
        (Answer(404), "upstream_error", "upstream_error", 404),
        (Answer(302, headers={"Location": "/x"}), *["redirect_refused"] * 2, 302),
        (Answer(drops=True), "upstream_error", "connect_failed", None),
        (Answer(is_silent=True), "timeout", "timeout", None),
        (Answer(200, b"{not json"), *INVALID, None),
        (json_answer({"data": []}), *INVALID, None),
        (LENGTHS, *INVALID, None),
    ],
)
def test_each_fault_of_an_embedding_service_has_its_code(
    answer: Answer,
    code: str,
    reason: str,
    status: int | None,
    server: Provider,
    manager: Principal,
    settings: Any,
    tmp_path: Path,
) -> None:
    configure(settings, tmp_path, "[rag.http]\ntimeout_seconds = 1\n")
    lab(server)
    choosing.update(manager, {**EMBEDDING, "embeddingDimensions": 8})
    server.respond = lambda request: answer
    done = checking.check(manager, "embedding")
    assert (done.ok, done.code, done.reason, done.status) == (False, code, reason, status)
    assert done.error
    assert KEY not in repr(done)
    assert len(server.requests) == 1


def test_an_answer_that_cites_what_does_not_exist_is_a_fault(
    server: Provider, manager: Principal
) -> None:
    lab(server)
    choosing.update(manager, GENERATION)
    for content in ("Green.", '{"answer": "Green [S9].", "citations": ["S9"]}'):
        server.respond = openai_chat(content)
        done = checking.check(manager, "generation")
        assert (done.ok, done.code) == (False, "generation_invalid_response")
    server.respond = lambda request: json_answer({"results": [{"index": 0}]})
    choosing.update(manager, RERANK)
    assert checking.check(manager, "rerank").code == "rerank_invalid_response"


def test_a_service_of_the_file_is_tried_as_well_and_one_that_is_not_there_is_told(
    server: Provider, manager: Principal, alice: Principal, settings: Any, tmp_path: Path
) -> None:
    with pytest.raises(NotFound):
        checking.check(manager, "embedding")
    with pytest.raises(Forbidden):
        checking.check(alice, "embedding")
    configure(settings, tmp_path, service("embedding", server.port, "embed"))
    assert checking.check(manager, "embedding").ok
    assert server.requests[0].path == "/embed"
    away = '[rag.embedding]\nprotocol = "gemini"\nurl = "https://127.0.0.1:1/x"\nmodel = "m"\n'
    configure(settings, tmp_path, away)
    done = checking.check(manager, "embedding")
    assert (done.ok, done.code) == (False, "upstream_error")
    assert done.reason == "connect_failed"
