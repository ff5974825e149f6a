"""``/api/providers``: shapes, refusals, and tests that really call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from engine.providers.spec import ProviderSpec
from engine.testing import fake_services
from engine.testing.fake_models import openai_embeddings
from engine.testing.fake_provider import Answer, Provider, Request, json_answer, serving
from memory.models import AuditEntry
from memory.principal import SCOPES
from memory.tests.rest import refusal

Api = Callable[..., Any]
PATH = "/api/providers"
KEY = "sk-0123456789abcdef"


@pytest.fixture
def manager(api: Api) -> Any:
    return api("manager", *SCOPES)


@pytest.fixture
def server() -> Iterator[Provider]:
    def respond(request: Request) -> Answer:
        if request.path.endswith("/models"):
            return json_answer({"object": "list", "data": [{"id": "m1"}, {"id": "m2"}]})
        return openai_embeddings(request)

    with serving() as running:
        running.respond = respond
        yield running


def _url(server: Provider, path: str = "/v1") -> str:
    return f"http://127.0.0.1:{server.port}{path}"


def test_a_provider_is_added_read_changed_and_removed(manager: Any) -> None:
    body = {"name": "openai", "kind": "openai", "apiKey": KEY, "models": ["gpt-*"]}
    made = manager.call("POST", PATH, body).json()
    assert made == {
        **made,
        "name": "openai",
        "kind": "openai",
        "title": "OpenAI",
        "baseUrl": "https://api.openai.com/v1",
        "protocol": "openai",
        "models": ["gpt-*"],
        "enabled": True,
        "hasKey": True,
        "needsKey": True,
        "apiKeyMasked": "***cdef",
        "apiKeyEnv": None,
        "origin": "studio",
        "readOnly": False,
        "fixed": [],
        "problems": {},
        "can": {"chat": True, "embedding": True, "rerank": False},
        "usedFor": {"chat": True, "embedding": False, "rerank": False, "vaults": False},
        "revision": 1,
    }
    assert manager.call("GET", f"{PATH}/openai").json() == made
    assert manager.call("GET", f"{PATH}/{made['id']}").json() == made
    changed = manager.call("PUT", f"{PATH}/openai", {"enabled": False, "revision": 1}).json()
    assert (changed["enabled"], changed["revision"], changed["hasKey"]) == (False, 2, True)
    stale = manager.call("PUT", f"{PATH}/openai", {"enabled": True, "revision": 1})
    refusal(stale, 409, "revision_conflict")
    assert manager.call("DELETE", f"{PATH}/{made['id']}").json() == {"success": True}
    refusal(manager.call("GET", f"{PATH}/openai"), 404, "not_found")


def test_no_answer_and_no_audit_row_holds_a_key(manager: Any) -> None:
    body = {"name": "openai", "kind": "openai", "apiKey": KEY}
    answers = [manager.call("POST", PATH, body), manager.call("GET", PATH)]
    answers.append(manager.call("PUT", f"{PATH}/openai", {"apiKey": KEY + "2"}))
    answers.append(manager.call("POST", PATH, {**body, "name": "Bad", "apiKey": KEY + "\n"}))
    assert all(KEY not in answer.content.decode() for answer in answers)
    assert KEY not in str(list(AuditEntry.objects.values()))


def test_of_a_variable_only_its_name_is_shown(
    manager: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_SECRET", KEY)
    body = {"name": "openai", "kind": "openai", "apiKeyEnv": "SOME_SECRET"}
    made = manager.call("POST", PATH, body).json()
    assert (made["hasKey"], made["apiKeyMasked"], made["apiKeyEnv"]) == (True, None, "SOME_SECRET")


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({"name": "A B", "kind": "openai"}, ["name"]),
        ({"name": "lab"}, ["baseUrl"]),
        ({"name": "lab", "baseUrl": "http://169.254.169.254/v1"}, ["baseUrl"]),
        ({"name": "lab", "kind": "acme", "baseUrl": "http://a.example"}, ["kind"]),
        ({"name": "openai", "kind": "openai", "apiKey": "a", "apiKeyEnv": "B"}, ["apiKey"]),
        ({"name": "openai", "kind": "openai", "apiKeyEnv": "DATABASE_URL"}, ["apiKeyEnv"]),
    ],
)
def test_what_cannot_be_is_422_at_its_field(
    manager: Any, body: dict[str, Any], fields: list[str]
) -> None:
    error = refusal(manager.call("POST", PATH, body), 422, "invalid")
    assert list(error["fields"]) == fields
    assert manager.call("GET", PATH).json() == {"data": []}


def test_they_are_put_in_order(manager: Any) -> None:
    for name in ("openai", "anthropic", "cohere"):
        manager.call("POST", PATH, {"name": name, "kind": name})
    answer = manager.call("PUT", f"{PATH}/order", {"ids": ["cohere"]}).json()
    assert [row["name"] for row in answer["data"]] == ["cohere", "openai", "anthropic"]
    refusal(manager.call("PUT", f"{PATH}/order", {"ids": ["nobody"]}), 404, "not_found")


def test_what_is_set_up_outside_is_shown_and_changed_there(manager: Any, settings: Any) -> None:
    settings.MEMORY_STUDIO_PROVIDERS = [ProviderSpec("openai", "openai")]
    settings.MEMORY_STUDIO_PROVIDER_FIELDS = {"openai": {"api_key": KEY}}
    (row,) = manager.call("GET", PATH).json()["data"]
    assert (row["id"], row["origin"], row["readOnly"]) == ("openai", "config", True)
    assert (row["fixed"], row["hasKey"], row["revision"]) == (["apiKey"], True, None)
    refusal(manager.call("PUT", f"{PATH}/openai", {"enabled": False}), 409, "read_only")
    refusal(manager.call("DELETE", f"{PATH}/openai"), 409, "read_only")


def test_the_catalogue_tells_what_is_known(api: Api) -> None:
    rows = api("reader", "read").call("GET", f"{PATH}/catalogue").json()["data"]
    kinds = {row["kind"]: row for row in rows}
    assert kinds["anthropic"]["can"] == {"chat": True, "embedding": False, "rerank": False}
    assert kinds["voyage"]["rerankModels"][0] == "rerank-2.5"
    (small, *_others) = kinds["openai"]["embeddingModels"]
    assert small == {
        "id": "text-embedding-3-small",
        "dimensions": 1536,
        "choices": [512, 1536],
        "maxTokens": 8191,
    }


def test_a_test_asks_for_models_and_an_embedding(manager: Any, server: Provider) -> None:
    body = {"name": "lab", "baseUrl": _url(server), "apiKey": KEY, "enabled": False}
    manager.call("POST", PATH, body)
    answer = manager.call("POST", f"{PATH}/lab/test", {"model": "e5"}).json()
    models, embedding = answer["checks"]
    assert answer["ok"]
    assert (models["what"], models["count"], models["error"]) == ("models", 2, None)
    assert (embedding["what"], embedding["model"], embedding["dimensions"]) == (
        "embedding",
        "e5",
        64,
    )
    assert [request.path for request in server.requests] == ["/v1/models", "/v1/embeddings"]
    assert all(r.headers["authorization"] == f"Bearer {KEY}" for r in server.requests)
    assert [c["what"] for c in manager.call("POST", f"{PATH}/lab/test").json()["checks"]] == [
        "models"
    ]


def test_a_service_without_chats_is_asked_for_a_vector_and_a_ranking(
    manager: Any, server: Provider
) -> None:
    def respond(request: Request) -> Answer:
        is_rerank = request.path.endswith("/rerank")
        double = fake_services.voyage_rerank if is_rerank else fake_services.voyage_embeddings
        return double(request)

    server.respond = respond
    body = {"kind": "voyage", "baseUrl": _url(server), "apiKey": fake_services.KEY}
    manager.call("POST", PATH, {"name": "voyage", **body})
    answer = manager.call("POST", f"{PATH}/voyage/test").json()
    assert [(check["what"], check["model"]) for check in answer["checks"]] == [
        ("embedding", "voyage-4-large"),
        ("rerank", "rerank-2.5"),
    ]
    assert answer["ok"]


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (json_answer({"error": {"message": "bad key"}}, 401), "auth_failed"),
        (Answer(429), "rate_limited"),
        (Answer(404), "upstream_error"),
        (Answer(302, headers={"Location": "https://a.example"}), "redirect_refused"),
        (Answer(drops=True), "connect_failed"),
        (Answer(200, b"<html>"), "invalid_response"),
        (json_answer({"data": "many"}), "invalid_response"),
    ],
)
def test_a_test_that_fails_says_what_happened_and_stops(
    manager: Any, server: Provider, answer: Answer, code: str
) -> None:
    manager.call("POST", PATH, {"name": "lab", "baseUrl": _url(server), "apiKey": KEY})
    server.script = [answer]
    response = manager.call("POST", f"{PATH}/lab/test", {"model": "e5"})
    (check,) = response.json()["checks"]
    assert (response.json()["ok"], check["code"]) == (False, code)
    assert check["error"]
    assert KEY not in response.content.decode()
    assert len(server.requests) == 1


def test_a_provider_without_its_key_is_not_asked(manager: Any) -> None:
    manager.call("POST", PATH, {"name": "voyage", "kind": "voyage"})
    (check,) = manager.call("POST", f"{PATH}/voyage/test").json()["checks"]
    assert (check["ok"], check["code"]) == (False, "provider_key")


def test_embedding_models_tell_who_could_be_asked_now(manager: Any) -> None:
    manager.call("POST", PATH, {"name": "openai", "kind": "openai", "apiKey": KEY})
    manager.call("POST", PATH, {"name": "cohere", "kind": "cohere"})
    manager.call("POST", PATH, {"name": "claude", "kind": "anthropic", "apiKey": KEY})
    rows = manager.call("GET", "/api/memory/embedding-providers").json()["providers"]
    found = {row["provider"]: row for row in rows}
    assert [row["provider"] for row in rows][:3] == ["local", "openai", "cohere"]
    assert [found[name]["hasKey"] for name in ("openai", "cohere", "voyage")] == [
        True,
        False,
        False,
    ]
    assert "claude" not in found
    assert found["openai"]["models"][0] == {
        "id": "openai/text-embedding-3-small",
        "name": "text-embedding-3-small",
        "dimensions": 1536,
    }
