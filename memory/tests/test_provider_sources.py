"""``provider/model`` in the settings: which source and which reranker it means."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from engine.providers.spec import ProviderSpec
from engine.testing import fake_services
from engine.testing.fake_models import cohere_rerank, openai_embeddings
from engine.testing.fake_provider import Provider, serving
from engine.types import Purpose, Retrieval, Tier
from memory import wiring
from memory.errors import Conflict
from memory.models import Job, VectorIndex
from memory.principal import SYSTEM, Principal
from memory.services import embedding, providers, status
from memory.services import settings as studio_settings
from memory.services.retrieval import RetrieveRequest, retrieve
from memory.stored_settings import normalise
from memory.tests.conftest import Remember, Work

pytestmark = pytest.mark.django_db
SMALL = "openai/text-embedding-3-small"


@pytest.fixture
def server() -> Iterator[Provider]:
    with serving() as running:
        running.respond = openai_embeddings
        yield running


def ask(principal: Principal, query: str) -> Retrieval:
    return retrieve(principal, RetrieveRequest(query)).retrieval


def add(name: str, kind: str, **fields: Any) -> None:
    providers.create(SYSTEM, ProviderSpec(name, kind, **fields))


def at(server: Provider, path: str = "/v1") -> str:
    return f"http://127.0.0.1:{server.port}{path}"


def resolve(source: str, model: str | None, **stored: Any) -> wiring.Resolved:
    chosen = {"memoryEmbeddingSource": source, "memoryEmbeddingProviderModel": model, **stored}
    return wiring.resolve_source(normalise(chosen))


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("auto", id="embedding_resolve-02"),
        pytest.param("remote", id="embedding_resolve-07"),
    ],
)
def test_a_known_model_of_a_provider_needs_no_question(source: str) -> None:
    add("openai", "openai", api_key="sk-1")
    found = resolve(source, SMALL)
    assert found.source is not None
    signature = found.source.signature
    assert (found.family, signature.source, signature.dim) == ("remote", "remote", 1536)
    assert signature.model == "text-embedding-3-small"


def test_embedding_resolve_08_the_first_answer_tells_the_dimension(server: Provider) -> None:
    add("acme", "compatible", base_url=at(server))
    found = resolve("remote", "acme/unknown")
    assert found.source is not None
    assert wiring.signature_of(found.source).dim == 64
    assert [request.path for request in server.requests] == ["/v1/embeddings"]
    assert server.requests[0].json()["model"] == "unknown"


@pytest.mark.parametrize(
    ("spec", "model", "code"),
    [
        (None, SMALL, "no_provider"),
        (None, "text-embedding-3-small", "no_provider"),
        (None, None, "no_key"),
        (ProviderSpec("openai", "openai"), SMALL, "provider_key"),
        (ProviderSpec("openai", "openai", api_key="k", enabled=False), SMALL, "provider_off"),
        (ProviderSpec("openai", "anthropic", api_key="k"), SMALL, "no_embeddings"),
    ],
)
def test_an_explicit_remote_source_falls_back_to_nothing_and_says_why(
    spec: ProviderSpec | None, model: str | None, code: str
) -> None:
    if spec is not None:
        providers.create(SYSTEM, spec)
    found = resolve("remote", model)
    assert (found.source, found.off.code if found.off else "") == (None, code)


def test_auto_without_such_a_provider_stays_local() -> None:
    add("cohere", "cohere", api_key="k")
    assert resolve("auto", SMALL).family == "local"
    assert resolve("auto", None).family == "local"


def test_a_local_model_may_be_named_where_all_models_are_listed() -> None:
    found = resolve("remote", "local/use-multilingual")
    assert found.source is not None
    assert (found.family, found.source.name) == ("local", "local")


def test_an_address_in_the_settings_stands_before_a_provider(server: Provider) -> None:
    add("openai", "openai", api_key="k")
    stored = {"memoryEmbeddingCustomBaseUrl": at(server), "memoryEmbeddingCustomModelId": "own"}
    found = resolve("remote", SMALL, **stored)
    assert found.source is not None
    assert found.source.model == "own"


def test_the_language_of_the_service_is_spoken(server: Provider) -> None:
    server.respond = fake_services.cohere_embeddings
    add("cohere", "cohere", base_url=at(server, ""), api_key=fake_services.KEY)
    found = resolve("remote", "cohere/embed-v4.0")
    assert found.source is not None
    assert found.source.embed(["tea"], purpose=Purpose.QUERY).shape == (1, 64)
    assert server.requests[0].path == "/v2/embed"


def test_another_key_embeds_nothing_again_and_another_model_is_built_beside(
    server: Provider, alice: Principal, manager: Principal, remember: Remember, work: Work
) -> None:
    add("lab", "compatible", base_url=at(server), api_key="first-key")
    choice = {"embeddingSource": "remote", "embeddingProviderModel": "lab/one"}
    studio_settings.update(manager, choice)
    remember(alice, "likes tea")
    work()
    before = embedding.active_index()
    assert before is not None
    sent = len(server.requests)
    providers.update(manager, "lab", {"api_key": "second-key"})
    work()
    assert embedding.active_index() == before
    assert len(server.requests) == sent
    assert ask(alice, "tea").hits
    assert server.requests[-1].headers["authorization"] == "Bearer second-key"

    studio_settings.update(manager, {"embeddingProviderModel": "lab/two"})
    meanwhile = ask(alice, "tea")
    assert (meanwhile.embedding_model, meanwhile.tier) == ("one", Tier.HYBRID)
    work()
    after = embedding.active_index()
    assert after is not None
    assert after.model == "two"
    assert VectorIndex.objects.get(pk=before.pk).state == VectorIndex.State.RETIRED


def test_an_address_that_changes_makes_the_index_anew(
    server: Provider, alice: Principal, manager: Principal, remember: Remember, work: Work
) -> None:
    add("lab", "compatible", base_url=at(server))
    studio_settings.update(manager, {"embeddingProviderModel": "lab/one"})
    remember(alice, "likes tea")
    work()
    before = embedding.active_index()
    providers.update(manager, "lab", {"base_url": at(server, "/other/v1")})
    assert Job.objects.filter(kind="reindex", state=Job.State.QUEUED).exists()
    work()
    assert embedding.active_index() != before


def test_a_provider_in_use_is_neither_removed_nor_renamed(manager: Principal) -> None:
    add("openai", "openai", api_key="k")
    add("cohere", "cohere", api_key="k")
    rerank = {"rerankEnabled": True, "rerankProviderModel": "cohere/rerank-v3.5"}
    studio_settings.update(manager, {"embeddingProviderModel": SMALL, **rerank})
    assert providers.uses("openai", wiring.settings()) == {"embedding"}
    assert providers.uses("cohere", wiring.settings()) == {"rerank"}
    for name in ("openai", "cohere"):
        with pytest.raises(Conflict) as raised:
            providers.delete(manager, name)
        assert raised.value.code == "in_use"
        with pytest.raises(Conflict):
            providers.update(manager, name, {"name": "other"})
    studio_settings.update(manager, {"embeddingProviderModel": None, "rerankEnabled": False})
    providers.delete(manager, "openai")
    providers.delete(manager, "cohere")


def test_a_provider_puts_hits_in_order(
    server: Provider, alice: Principal, manager: Principal, remember: Remember
) -> None:
    server.respond = cohere_rerank
    add("cohere", "cohere", base_url=at(server, ""), api_key="co-key-of-cohere")
    rerank = {"rerankEnabled": True, "rerankProviderModel": "cohere/rerank-v3.5"}
    studio_settings.update(manager, rerank)
    remember(alice, "likes tea")
    remember(alice, "tea is served at noon")
    found = ask(alice, "tea at noon")
    assert found.reranker == "remote"
    (request,) = server.requests
    assert (request.path, request.json()["model"]) == ("/v2/rerank", "rerank-v3.5")
    assert request.headers["authorization"] == "Bearer co-key-of-cohere"


@pytest.mark.parametrize(
    ("spec", "code"),
    [
        (None, "no_provider"),
        (ProviderSpec("cohere", "cohere"), "provider_key"),
        (ProviderSpec("cohere", "anthropic", api_key="k"), "no_reranking"),
    ],
)
def test_a_reranker_that_cannot_be_says_why(
    alice: Principal,
    manager: Principal,
    remember: Remember,
    spec: ProviderSpec | None,
    code: str,
) -> None:
    if spec is not None:
        providers.create(SYSTEM, spec)
    rerank = {"rerankEnabled": True, "rerankProviderModel": "cohere/rerank-v3.5"}
    studio_settings.update(manager, rerank)
    remember(alice, "likes tea")
    found = ask(alice, "tea")
    assert [item.code for item in found.degraded if item.tier == "rerank"] == [code]


def test_engine_status_names_the_provider_and_its_model(
    server: Provider, alice: Principal, manager: Principal, remember: Remember, work: Work
) -> None:
    add("lab", "compatible", base_url=at(server))
    add("cohere", "cohere", api_key="k")
    rerank = {"rerankEnabled": True, "rerankProviderModel": "cohere/rerank-v3.5"}
    studio_settings.update(manager, {"embeddingProviderModel": "lab/one", **rerank})
    remember(alice, "likes tea")
    work()
    found = status.engine_status(manager)
    assert (found.source, found.model, found.dimensions) == ("remote", "one", 64)
    assert (found.rerank_provider, found.rerank_model) == ("cohere", "rerank-v3.5")
