"""Services of vaults that the studio chose: what is called, what is sent, and what is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.testing.fake_models import cohere_rerank, gemini_embeddings, openai_embeddings
from engine.testing.fake_provider import Answer, Provider, Request
from engine.testing.fake_writers import anthropic_messages, gemini_generate, openai_chat
from engine.types import Mode
from memory import vault_wiring
from memory.errors import Invalid
from memory.models import AuditEntry, EngineSettings, Vault
from memory.principal import Principal
from memory.services import providers
from memory.services.vaults import asking, choosing, searching
from memory.tests.vault_lab import EMBEDDING, KEY, QUESTION, filled, lab, near, refused, running
from memory.tests.vaults import (
    WRITTEN,
    meanwhile,
    query,
    sent,
)

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def server(settings: Any, tmp_path: Path) -> Iterator[Provider]:
    with running(settings, tmp_path) as one:
        yield one


@pytest.fixture
def vault(server: Provider, alice: Principal) -> Vault:
    return filled(alice)


def test_a_provider_alone_is_sent_nothing(
    server: Provider, alice: Principal, manager: Principal, vault: Vault
) -> None:
    lab(server)
    near(alice, vault)
    assert refused(lambda: asking.answer(alice, query(vault))) == ("generation_not_configured", "")
    assert server.requests == []
    assert choosing.get(manager).services == vault_wiring.services()
    assert vault_wiring.services().embedding is None


@pytest.mark.parametrize(
    ("kind", "path", "respond", "called", "header"),
    [
        ("compatible", "/v1", openai_embeddings, "/v1/embeddings", "authorization"),
        (
            "gemini",
            "/v1beta",
            gemini_embeddings,
            "/v1beta/models/embedder:batchEmbedContents",
            "x-goog-api-key",
        ),
    ],
)
def test_a_chosen_service_embeds_with_its_key_at_its_address(
    kind: str,
    path: str,
    respond: Callable[[Request], Answer],
    called: str,
    header: str,
    server: Provider,
    alice: Principal,
    manager: Principal,
    vault: Vault,
) -> None:
    lab(server, kind, path)
    server.respond = respond
    choosing.update(manager, {**EMBEDDING, "embeddingDimensions": 32})
    assert near(alice, vault).embedded == 3
    assert {request.path for request in server.requests} == {called}
    assert {request.headers[header].removeprefix("Bearer ") for request in server.requests} == {KEY}
    assert "Refunds are paid" in sent(server)
    found = searching.status(alice, "notes")
    assert (found.backend.host, found.backend.origin) == (f"127.0.0.1:{server.port}", "studio")
    assert found.backend.provider == "lab"
    assert found.figures.signature.endswith(":32")
    assert KEY not in repr(found) + repr(vault_wiring.services())


@pytest.mark.parametrize("mode", ["off", "json_object", "json_schema"])
@pytest.mark.parametrize(
    ("kind", "path", "respond", "called"),
    [
        (
            "compatible",
            "/v1",
            openai_chat(WRITTEN, key=f"Bearer {KEY}"),
            "/v1/chat/completions",
        ),
        ("gemini", "/v1beta", gemini_generate(WRITTEN), "/v1beta/models/writer:generateContent"),
        (
            "azure",
            "/openai/v1",
            openai_chat(WRITTEN, key=KEY, header="api-key"),
            "/openai/v1/chat/completions",
        ),
    ],
)
def test_a_chosen_service_answers(
    kind: str,
    path: str,
    respond: Callable[[Request], Answer],
    called: str,
    mode: str,
    server: Provider,
    alice: Principal,
    manager: Principal,
    vault: Vault,
) -> None:
    lab(server, kind, path)
    server.respond = respond
    changes = {"generationProviderModel": "lab/writer", "generationJsonMode": mode}
    choosing.update(manager, changes)
    view = asking.answer(alice, query(vault, QUESTION))
    assert view.asked.answer.text == "Within seven days [S1]."
    (request,) = server.requests
    assert request.path == called
    body = request.json()
    shape = body.get("generationConfig") if kind == "gemini" else body.get("response_format")
    assert ("schema" in str(shape).lower()) == (mode == "json_schema")
    assert (mode in str(shape)) == (mode != "off" and kind != "gemini")
    assert AuditEntry.objects.get(action="vault.ask").detail["host"].startswith("127.0.0.1:")


def test_a_service_without_a_json_mode_answers_by_its_own_language(
    server: Provider, alice: Principal, manager: Principal, vault: Vault
) -> None:
    lab(server, "anthropic")
    server.respond = anthropic_messages(WRITTEN, key=KEY)
    with pytest.raises(Invalid) as raised:
        choosing.update(
            manager,
            {"generationProviderModel": "lab/writer", "generationJsonMode": "json_object"},
        )
    assert list(raised.value.fields) == ["generationJsonMode"]
    choosing.update(manager, {"generationProviderModel": "lab/writer"})
    assert asking.answer(alice, query(vault, QUESTION)).asked.answer.citations == ("S1",)
    assert [request.path for request in server.requests] == ["/v1/messages"]
    server.respond = lambda request: Answer(200, b'{"content": []}')
    code = "generation_invalid_response"
    assert refused(lambda: asking.answer(alice, query(vault))) == (code, "invalid_response")
    server.respond = lambda request: Answer(401)
    assert refused(lambda: asking.answer(alice, query(vault)))[0] == "auth_failed"


@pytest.mark.parametrize(
    ("kind", "path", "called"),
    [("compatible", "/v1", "/v1/rerank"), ("cohere", "", "/v2/rerank")],
)
def test_a_chosen_service_ranks(
    kind: str,
    path: str,
    called: str,
    server: Provider,
    alice: Principal,
    manager: Principal,
    vault: Vault,
) -> None:
    lab(server, kind, path)
    server.respond = cohere_rerank
    choosing.update(manager, {"rerankProviderModel": "lab/ranker"})
    view = searching.find(alice, query(vault, "parcels refund", mode=Mode.KEYWORD))
    assert view.reranked == "service"
    assert [request.path for request in server.requests] == [called]
    server.respond = lambda request: Answer(200, b'{"results": []}')
    act = lambda: searching.find(alice, query(vault, "parcels refund", mode=Mode.KEYWORD))  # noqa: E731
    assert refused(act)[0] == "rerank_invalid_response"


def test_another_choice_embeds_everything_anew_and_mixes_no_spaces(
    server: Provider, alice: Principal, manager: Principal, vault: Vault
) -> None:
    lab(server)
    near(alice, vault)
    local = searching.status(alice, "notes").figures.signature
    seen = {local}
    for model, dimensions in (("one", 32), ("one", 48), ("two", 48)):
        server.requests.clear()
        changes = {"embeddingProviderModel": f"lab/{model}", "embeddingDimensions": dimensions}
        choosing.update(manager, changes)
        assert near(alice, vault).embedded == 3
        # Three chunks, and the query.
        texts = [text for request in server.requests for text in request.json()["input"]]  # type: ignore[attr-defined]
        assert len(set(texts)) == 4
        signature = searching.status(alice, "notes").figures.signature
        assert signature not in seen
        seen.add(signature)
    choosing.update(manager, {"embeddingProviderModel": None})
    near(alice, vault)
    assert searching.status(alice, "notes").figures.signature == local


def choose_another(manager: Principal) -> None:
    choosing.update(manager, {"embeddingProviderModel": "lab/other"})


def choose_none(manager: Principal) -> None:
    choosing.update(manager, {"embeddingProviderModel": ""})


def choose_what_ranks(manager: Principal) -> None:
    choosing.update(manager, {"rerankProviderModel": "lab/ranker"})


def change_the_key(manager: Principal) -> None:
    providers.update(manager, "lab", {"api_key": "sk-another"})


def switch_it_off(manager: Principal) -> None:
    providers.update(manager, "lab", {"enabled": False})


@pytest.mark.parametrize(
    "change", [choose_another, choose_none, choose_what_ranks, change_the_key, switch_it_off]
)
def test_work_under_another_choice_is_void(
    change: Callable[[Principal], None],
    server: Provider,
    alice: Principal,
    manager: Principal,
    vault: Vault,
) -> None:
    lab(server)
    choosing.update(manager, EMBEDDING)
    server.respond = meanwhile(lambda: change(manager), openai_embeddings)
    assert refused(lambda: near(alice, vault)) == ("source_changed", "services")
    assert len(server.requests) == 1


def test_a_choice_written_by_another_process_holds_at_once(
    server: Provider, alice: Principal, manager: Principal, vault: Vault
) -> None:
    lab(server)
    near(alice, vault)
    # Nothing of this process is told: only the row has changed.
    row = EngineSettings.objects.get_or_create(pk=1)[0]
    row.stored |= {"vaultEmbeddingProviderModel": "lab/embedder", "vaultServicesRevision": 7}
    row.save()
    near(alice, vault)
    assert server.requests
    assert choosing.get(manager).kept.revision == 7


def test_the_key_of_a_named_variable_is_sent_and_its_name_told(
    server: Provider,
    alice: Principal,
    manager: Principal,
    vault: Vault,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LAB_KEY", "sk-in-a-variable")
    lab(server, api_key="", key_variable="LAB_KEY")
    choosing.update(manager, EMBEDDING)
    near(alice, vault)
    assert server.requests[0].headers["authorization"] == "Bearer sk-in-a-variable"
    chosen = vault_wiring.services().embedding
    assert chosen is not None
    assert (chosen.key_variable, chosen.has_key) == ("LAB_KEY", True)
    monkeypatch.delenv("LAB_KEY")
    found = vault_wiring.services().embedding
    assert found is not None and not found.has_key
