"""``/api/settings``: the memory settings, and those of Qdrant with its routes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memory.models import AuditEntry, EngineSettings
from memory.principal import SCOPES
from memory.services import settings as settings_service
from memory.tests.rest import refusal

Api = Callable[..., Any]
MEMORY = "/api/settings/memory"
QDRANT = "/api/settings/qdrant"


@pytest.fixture
def manager(api: Api) -> Any:
    """A client that may do everything."""
    return api("manager", *SCOPES)


def test_retrieval_config_01_the_defaults_are_those_of_the_first_system(manager: Any) -> None:
    found = manager.call("GET", MEMORY).json()
    expected = {
        "enabled": False,
        "maxTokens": 2000,
        "retentionDays": 30,
        "strategy": "hybrid",
        "skillsEnabled": True,
        "embeddingSource": "auto",
        "embeddingProviderModel": None,
        "transformersEnabled": False,
        "staticEnabled": False,
        "rerankEnabled": False,
        "rerankProviderModel": None,
        "vectorStore": "auto",
        "primaryBackend": "sqlite",
        "fallbackBackends": [],
        "backendConfigs": {},
        "customBaseUrl": None,
        "customModelId": None,
        "autoSummarize": False,
        "customProtocol": "compatible",
        "fusionWeights": {},
        "rerankKind": None,
        "rerankBaseUrl": None,
        "recencyWeight": 0.0,
        "useWeight": 0.0,
    }
    assert {name: found[name] for name in expected} == expected


def test_what_is_sent_changes_and_the_rest_stays(manager: Any) -> None:
    sent = {"enabled": True, "maxTokens": 0, "retentionDaysByType": {"semantic": 365}}
    assert {**manager.call("PUT", MEMORY, sent).json(), **sent} == manager.call(
        "GET", MEMORY
    ).json()
    assert manager.call("PUT", MEMORY, {"strategy": "recent"}).json()["enabled"] is True


def test_settings_update_02_values_are_kept_under_the_first_systems_names(manager: Any) -> None:
    body = {
        "enabled": False,
        "maxTokens": 4096,
        "retentionDays": 21,
        "strategy": "hybrid",
        "skillsEnabled": True,
    }
    manager.call("PUT", MEMORY, body)
    assert EngineSettings.objects.get().stored == {
        "memoryEnabled": False,
        "memoryMaxTokens": 4096,
        "memoryRetentionDays": 21,
        "memoryStrategy": "hybrid",
        "skillsEnabled": True,
    }


def test_a_change_is_audited_by_the_names_of_its_fields(manager: Any) -> None:
    manager.call("PUT", MEMORY, {"strategy": "recent", "customApiKey": "sk-secret"})
    row = AuditEntry.objects.get(action="settings.update")
    assert row.target_ids == ["customApiKey", "strategy"]
    assert "sk-secret" not in str(row.__dict__)


def test_a_secret_is_sealed_at_rest_and_shown_as_a_mask_only(manager: Any) -> None:
    manager.call("PUT", MEMORY, {"customApiKey": "sk-very-secret-1234"})
    response = manager.call("GET", MEMORY)
    assert response.json()["customApiKeyMasked"] == "***1234"
    assert response.json()["hasCustomApiKey"] is True
    assert "very-secret" not in response.content.decode()
    assert "very-secret" not in str(EngineSettings.objects.get().stored)
    cleared = manager.call("PUT", MEMORY, {"customApiKey": ""}).json()
    assert (cleared["hasCustomApiKey"], cleared["customApiKeyMasked"]) == (False, None)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"maxTokens": 16_001}, "maxTokens"),
        ({"maxTokens": -1}, "maxTokens"),
        ({"maxTokens": "2000"}, "maxTokens"),
        ({"retentionDays": 0}, "retentionDays"),
        ({"retentionDays": 366}, "retentionDays"),
        ({"retentionDays": 1.5}, "retentionDays"),
        ({"retentionDaysByType": {"semantic": 400}}, "retentionDaysByType.semantic"),
        ({"strategy": "exact"}, "strategy"),
        ({"embeddingSource": "magic"}, "embeddingSource"),
        ({"vectorStore": "faiss"}, "vectorStore"),
        ({"enabled": "yes"}, "enabled"),
        ({"enabled": 1}, "enabled"),
        ({"customBaseUrl": "ftp://x"}, "customBaseUrl"),
        ({"customBaseUrl": "http://user:pass@x"}, "customBaseUrl"),
        ({"customBaseUrl": "http://x?y=1"}, "customBaseUrl"),
        ({"customBaseUrl": "http://x/#y"}, "customBaseUrl"),
        ({"customBaseUrl": "http://x:99999"}, "customBaseUrl"),
        ({"customBaseUrl": "x" * 3000}, "customBaseUrl"),
        ({"fallbackBackends": "sqlite"}, "fallbackBackends"),
        ({"backendConfigs": {"a": 1}}, "backendConfigs.a"),
        ({"fusionWeights": {"keyword": 11}}, "fusionWeights.keyword"),
        ({"fusionWeights": {"stars": 1}}, "fusionWeights.stars.[key]"),
        ({"rerankKind": "magic"}, "rerankKind"),
        ({"rerankProtocol": "soap"}, "rerankProtocol"),
        ({"rerankBaseUrl": "ftp://x"}, "rerankBaseUrl"),
        ({"recencyWeight": 1.5}, "recencyWeight"),
        ({"useWeight": -0.1}, "useWeight"),
        ({"customProtocol": "soap"}, "customProtocol"),
        ({"localModel": "../etc"}, "localModel"),
        ({"localModel": "not-there"}, "localModel"),
    ],
)
def test_settings_out_of_bounds_are_422_and_change_nothing(
    manager: Any, body: dict[str, Any], field: str
) -> None:
    error = refusal(manager.call("PUT", MEMORY, body), 422, "invalid")
    assert list(error["fields"]) == [field]
    assert not EngineSettings.objects.exists()


@pytest.mark.parametrize("value", ["off", "auto", 0.25, -1, 1])
def test_the_relevance_floor_is_a_word_or_a_cosine(manager: Any, value: Any) -> None:
    assert manager.call("PUT", MEMORY, {"relevanceFloor": value}).json()["relevanceFloor"] == value


@pytest.mark.parametrize("value", ["high", 1.5, -2, True])
def test_another_relevance_floor_is_422(manager: Any, value: Any) -> None:
    error = refusal(manager.call("PUT", MEMORY, {"relevanceFloor": value}), 422, "invalid")
    assert all(name.startswith("relevanceFloor") for name in error["fields"])


def test_the_key_of_a_rerank_service_is_sealed_and_masked(manager: Any) -> None:
    answer = manager.call("PUT", MEMORY, {"rerankApiKey": "rk-secret-4321"})
    assert (answer.json()["hasRerankApiKey"], answer.json()["rerankApiKeyMasked"]) == (
        True,
        "***4321",
    )
    assert "rk-secret" not in str(EngineSettings.objects.get().stored)
    assert manager.call("PUT", MEMORY, {"rerankApiKey": ""}).json()["hasRerankApiKey"] is False


@pytest.mark.parametrize(
    ("body", "reranker"),
    [
        ({}, "none"),
        ({"rerankEnabled": True}, "light"),
        ({"rerankEnabled": True, "rerankProviderModel": "acme/rerank-2"}, "remote"),
        ({"rerankEnabled": True, "rerankKind": "late"}, "late"),
        ({"rerankEnabled": True, "rerankKind": "none"}, "none"),
        ({"rerankEnabled": False, "rerankKind": "light"}, "none"),
    ],
)
def test_the_first_systems_switch_and_ours_choose_the_reranker(
    manager: Any, body: dict[str, Any], reranker: str
) -> None:
    manager.call("PUT", MEMORY, body)
    assert settings_service.get().reranker == reranker


@pytest.mark.parametrize(
    "value",
    ["NaN", "Infinity", '"\\u0000"', '"\\ud800"', "[" * 90 + "]" * 90],
    ids=["NaN", "infinity", "NUL", "lone surrogate", "deep"],
)
def test_a_backend_configuration_that_no_database_holds_is_422(manager: Any, value: str) -> None:
    body = '{"backendConfigs": {"a": {"b": ' + value + "}}}"
    refusal(manager.call("PUT", MEMORY, body), 422, "invalid")


def test_a_blank_endpoint_is_none(manager: Any) -> None:
    answer = manager.call("PUT", MEMORY, {"customBaseUrl": "  ", "customModelId": ""}).json()
    assert (answer["customBaseUrl"], answer["customModelId"]) == (None, None)


def test_rest_13_the_qdrant_settings_never_show_the_key(manager: Any) -> None:
    answer = manager.call("GET", QDRANT).json()
    assert "apiKey" not in answer
    assert (answer["apiKeyMasked"], answer["hasApiKey"]) == (None, False)
    assert (answer["port"], answer["collection"]) == (6333, "omniroute_memory")
    masked = manager.call("PUT", QDRANT, {"apiKey": "qd-secret-9876"})
    assert masked.json()["apiKeyMasked"] == "***9876"
    assert "qd-secret" not in masked.content.decode()
    assert manager.call("PUT", QDRANT, {"apiKey": ""}).json()["hasApiKey"] is False


@pytest.mark.parametrize(
    ("bodies", "store"),
    [
        pytest.param([{"enabled": True, "host": "q"}], "qdrant", id="rest_14"),
        pytest.param([{"enabled": True}, {"enabled": False}], "auto", id="switched off again"),
        pytest.param([{"collection": "c2"}], "sqlite-vec", id="rest_16"),
        pytest.param([{"enabled": True}, {"collection": "c2"}], "qdrant", id="rest_16 when on"),
    ],
)
def test_the_qdrant_switch_chooses_the_store(
    manager: Any, bodies: list[dict[str, Any]], store: str
) -> None:
    manager.call("PUT", MEMORY, {"vectorStore": "sqlite-vec"})
    for body in bodies:
        answer = manager.call("PUT", QDRANT, body)
        assert {**answer.json(), **body} == answer.json()
    assert manager.call("GET", MEMORY).json()["vectorStore"] == store


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"port": 0}, "port"),
        ({"port": 65536}, "port"),
        ({"port": "6333"}, "port"),
        ({"collection": ""}, "collection"),
        ({"embeddingModel": ""}, "embeddingModel"),
        ({"quantization": "half"}, "quantization"),
        ({"host": "a\0"}, "host"),
    ],
)
def test_qdrant_settings_out_of_bounds_are_422(
    manager: Any, body: dict[str, Any], field: str
) -> None:
    error = refusal(manager.call("PUT", QDRANT, body), 422, "invalid")
    assert list(error["fields"]) == [field]


def test_rest_17_qdrant_that_is_not_configured_says_so(manager: Any) -> None:
    answer = manager.call("GET", f"{QDRANT}/health").json()
    assert (answer["ok"], answer["error"]) == (False, "not_configured")
    assert isinstance(answer["latencyMs"], int | float)


def test_rest_18_a_qdrant_clean_up_answers_its_figures(manager: Any) -> None:
    answer = manager.call("POST", f"{QDRANT}/cleanup").json()
    assert {"ok", "deletedCount", "retentionDays"} <= set(answer)
    assert answer["retentionDays"] > 0


def test_a_qdrant_search_test_has_bounds(manager: Any) -> None:
    path = f"{QDRANT}/search"
    answer = manager.call("POST", path, {"query": "tea"}).json()
    assert (answer["ok"], answer["results"], answer["error"]) == (False, [], "not_configured")
    for body in ({"query": ""}, {"query": "tea", "topK": 51}, {"query": "tea", "topK": 0}):
        refusal(manager.call("POST", path, body), 422, "invalid")


def test_rest_19_the_default_model_is_always_a_choice(manager: Any) -> None:
    models = manager.call("GET", f"{QDRANT}/embedding-models").json()["models"]
    assert {"value": "openai/text-embedding-3-small", "label": "openai/text-embedding-3-small"} in (
        models
    )


def test_rest_20_providers_name_their_models_by_provider(manager: Any) -> None:
    manager.call("PUT", MEMORY, {"customBaseUrl": "http://x/v1", "customModelId": "e5"})
    providers = manager.call("GET", "/api/memory/embedding-providers").json()["providers"]
    assert [item["provider"] for item in providers][:3] == ["local", "compatible", "openai"]
    assert [item["hasKey"] for item in providers][:3] == [True, False, False]
    for item in providers:
        assert set(item) == {"provider", "hasKey", "models"}
        assert item["models"]
        for model in item["models"]:
            assert model["id"].startswith(f"{item['provider']}/")
            assert {"id", "name", "dimensions"} == set(model)


@pytest.mark.parametrize(("value", "status"), [(1500.0, 200), (1500.5, 422), (True, 422)])
def test_json_knows_one_kind_of_number(manager: Any, value: object, status: int) -> None:
    answer = manager.call("PUT", "/api/settings/memory", {"maxTokens": value})
    assert answer.status_code == status
    kept = manager.call("GET", "/api/settings/memory").json()["maxTokens"]
    assert kept == (1500 if status == 200 else 2000)
