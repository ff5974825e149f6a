"""The catalogue of services, how they are spoken to, and what can be wrong with a provider."""

from __future__ import annotations

import pytest

from engine.errors import EngineError
from engine.net.policy import OPERATOR, check_url
from engine.providers import catalogue
from engine.providers.spec import ProviderSpec, problems
from engine.providers.speech import SPEECH, ProviderProtocol, chat_headers, chat_url


def test_the_catalogue_has_the_services_that_are_promised() -> None:
    ids = [service.id for service in catalogue.services()]
    assert len(set(ids)) == len(ids)
    assert {"openai", "anthropic", "cohere", "gemini", "voyage", "jina", "mistral"} <= set(ids)
    assert {"ollama", "openrouter", "together", "deepinfra", "azure", "compatible"} <= set(ids)


@pytest.mark.parametrize("service", catalogue.services(), ids=lambda service: service.id)
def test_a_service_is_whole(service: catalogue.Service) -> None:
    speech = SPEECH[service.protocol]
    if service.base_url:
        target = check_url(service.base_url, OPERATOR)
        assert target.is_loopback or target.scheme == "https"
    assert not problems(ProviderSpec("x", service.id, service.base_url or "https://a.example"))
    assert bool(service.embedding_models) <= bool(speech.embedding)
    assert bool(service.rerank_models) <= service.rerank <= (speech.rerank is not None)
    assert service.chat <= (speech.chat is not None)
    for model in service.embedding_models:
        assert model.dimensions is None or 1 <= model.dimensions <= 4096
        assert not model.choices or model.dimensions in model.choices


def test_every_protocol_has_its_speech() -> None:
    assert set(SPEECH) == set(ProviderProtocol)


def test_what_is_known_of_a_model() -> None:
    openai = catalogue.find("openai")
    small = openai.embedding_model("text-embedding-3-small")
    assert small is not None
    assert small.dimensions == 1536
    assert openai.embedding_model("acme") is None
    with pytest.raises(EngineError, match="no provider of this kind") as raised:
        catalogue.find("acme")
    assert raised.value.code == "unknown_kind"


@pytest.mark.parametrize(
    ("protocol", "url", "headers"),
    [
        ("openai", "https://a.example/v1", {"Authorization": "Bearer k"}),
        ("azure", "https://a.example/v1", {"api-key": "k"}),
        (
            "anthropic",
            "https://a.example/v1",
            {"x-api-key": "k", "anthropic-version": "2023-06-01"},
        ),
        ("gemini", "https://a.example/v1/openai", {"Authorization": "Bearer k"}),
        ("cohere", "https://a.example/v1/compatibility/v1", {"Authorization": "Bearer k"}),
        ("voyage", None, {"Authorization": "Bearer k"}),
    ],
)
def test_where_chats_go_and_as_whom(
    protocol: str, url: str | None, headers: dict[str, str]
) -> None:
    speaks = ProviderProtocol(protocol)
    assert chat_url("https://a.example/v1/", speaks) == url
    assert chat_headers(speaks, "k") == headers


def test_without_a_key_none_is_sent() -> None:
    assert chat_headers(ProviderProtocol.OPENAI, "") == {}


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({}, {}),
        ({"name": "my-lab-2"}, {}),
        ({"name": "My lab"}, {"name": "bad_name"}),
        ({"name": "local"}, {"name": "reserved_name"}),
        ({"name": "a/b"}, {"name": "bad_name"}),
        ({"name": "a" * 61}, {"name": "bad_name"}),
        ({"kind": "acme"}, {"kind": "unknown_kind"}),
        ({"kind": "compatible"}, {"base_url": "missing"}),
        ({"protocol": "soap"}, {"protocol": "unknown_protocol"}),
        ({"base_url": "http://169.254.169.254/v1"}, {"base_url": "blocked_address"}),
        ({"base_url": "http://user:pw@a.example"}, {"base_url": "credentials_in_url"}),
        ({"base_url": "https://a.example/v1?k=1"}, {"base_url": "query_in_url"}),
        ({"base_url": "https://a.example/" + "a" * 2048}, {"base_url": "malformed"}),
        ({"base_url": "http://10.0.0.5:11434/v1"}, {}),
        ({"api_key": "sk-1\nHost: x"}, {"api_key": "bad_key"}),
        ({"api_key": "clé"}, {"api_key": "bad_key"}),
        ({"api_key": "k", "key_variable": "K"}, {"api_key": "two_keys"}),
        ({"key_variable": "MY-KEY"}, {"key_variable": "bad_variable"}),
        ({"key_variable": "MEMORY_STUDIO_SECRET_KEY"}, {"key_variable": "our_variable"}),
        ({"key_variable": "DATABASE_URL_FILE"}, {"key_variable": "our_variable"}),
        ({"key_variable": "PGPASSWORD"}, {"key_variable": "our_variable"}),
        ({"key_variable": "POSTGRES_PASSWORD"}, {"key_variable": "our_variable"}),
        ({"key_variable": "OTEL_EXPORTER_OTLP_HEADERS"}, {"key_variable": "our_variable"}),
        ({"key_variable": "https_proxy"}, {"key_variable": "our_variable"}),
        ({"models": ("gpt-*", "")}, {"models": "bad_models"}),
        ({"models": tuple(str(n) for n in range(201))}, {"models": "bad_models"}),
    ],
)
def test_what_can_be_wrong_with_a_provider(
    fields: dict[str, object], wrong: dict[str, str]
) -> None:
    values: dict[str, object] = {"name": "openai", "kind": "openai", **fields}
    assert problems(ProviderSpec(**values)) == wrong  # type: ignore[arg-type]


def test_a_provider_never_shows_its_key() -> None:
    assert "sk-secret" not in repr(ProviderSpec("openai", "openai", api_key="sk-secret"))


def test_models_are_ids_or_patterns_and_else_those_of_the_kind() -> None:
    anthropic = ProviderSpec("anthropic", "anthropic")
    assert anthropic.serves("claude-opus-4-1")
    assert not anthropic.serves("gpt-5")
    own = ProviderSpec("lab", base_url="http://127.0.0.1:8000/v1/", models=("qwen3", "llama-*"))
    assert (own.serves("qwen3"), own.serves("llama-4"), own.serves("qwen3-8b")) == (
        True,
        True,
        False,
    )
    assert own.url == "http://127.0.0.1:8000/v1"
