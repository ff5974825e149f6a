"""A reranker that fails keeps the order of the fusion; the answer and the status say so."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from engine.testing.fake_provider import Answer, Provider, serving
from engine.types import Mode
from memory.principal import SYSTEM, Principal
from memory.services import settings as studio_settings
from memory.services import status
from memory.services.retrieval import RetrieveRequest, retrieve
from memory.tests.asking import contents
from memory.tests.conftest import Remember

REQUEST = RetrieveRequest("green tea", mode=Mode.HYBRID, trace=True)


@pytest.fixture
def provider() -> Iterator[Provider]:
    with serving() as running:
        yield running


def test_a_failure_is_told_until_the_next_success(
    alice: Principal, remember: Remember, provider: Provider
) -> None:
    for text in ("green tea at noon", "green apples", "black tea"):
        remember(alice, text)
    plain = contents(retrieve(alice, REQUEST))
    settings = {
        "rerankEnabled": True,
        "rerankKind": "remote",
        "rerankProtocol": "tei",
        "rerankBaseUrl": f"http://127.0.0.1:{provider.port}",
    }
    studio_settings.update(SYSTEM, settings)
    assert status.engine_status(SYSTEM).rerank.state == "on"

    provider.respond = lambda _request: Answer(status=503)
    view = retrieve(alice, REQUEST)
    assert contents(view) == plain
    assert [item.code for item in view.retrieval.degraded if item.tier == "rerank"] == [
        "request_failed"
    ]
    told = status.engine_status(SYSTEM).rerank
    assert (told.state, told.code, bool(told.reason)) == ("warn", "request_failed", True)

    best_last = [{"index": place, "score": place / 10} for place in range(len(plain))]
    provider.respond = lambda _request: Answer(body=json.dumps(best_last).encode())
    view = retrieve(alice, REQUEST)
    assert (contents(view), view.retrieval.reranker) == (plain[::-1], "remote")
    assert status.engine_status(SYSTEM).rerank.state == "on"
