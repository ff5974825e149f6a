"""``/api/settings/vaults``: what is told, what is changed, and what is refused where."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.testing.fake_provider import Answer, Provider
from memory.tests.rest import refusal
from memory.tests.vault_lab import KEY, running
from memory.tests.vaults import configure

pytestmark = pytest.mark.django_db(transaction=True)
Api = Callable[..., Any]
PATH = "/api/settings/vaults"
FILE = """
[rag.embedding]
protocol = "gemini"
url = "https://generativelanguage.googleapis.com/v1beta/models/gemini-embedding-001:embedContent"
model = "gemini-embedding-001"
dimensions = 768
api_key_env = "VAULT_TEST_KEY"
"""


@pytest.fixture
def server(settings: Any, tmp_path: Path) -> Iterator[Provider]:
    with running(settings, tmp_path) as one:
        yield one


@pytest.fixture
def client(server: Provider, api: Api) -> Any:
    made = api("manager", "read", "write", "manage")
    body = {
        "name": "lab",
        "kind": "compatible",
        "baseUrl": f"http://127.0.0.1:{server.port}/v1",
        "apiKey": KEY,
    }
    assert made.call("POST", "/api/providers", body).status_code == 200
    return made


def test_services_are_chosen_read_tried_and_given_up(client: Any, server: Provider) -> None:
    nothing = client.call("GET", PATH).json()
    assert nothing == {
        "embeddingProviderModel": None,
        "embeddingDimensions": None,
        "generationProviderModel": None,
        "generationJsonMode": "off",
        "rerankProviderModel": None,
        "inForce": {"embedding": None, "generation": None, "rerank": None},
        "revision": 0,
    }
    body = {"embeddingProviderModel": " lab/m ", "embeddingDimensions": 32, "revision": 0}
    chosen = client.call("PUT", PATH, body)
    assert chosen.status_code == 200, chosen.content
    assert KEY not in chosen.content.decode()
    assert chosen.json()["inForce"]["embedding"] == {
        "origin": "studio",
        "provider": "lab",
        "protocol": "compatible",
        "model": "m",
        "host": f"127.0.0.1:{server.port}",
        "dimensions": 32,
        "jsonMode": None,
        "apiKeyEnv": None,
        "hasKey": True,
        "problem": None,
    }
    used = client.call("GET", "/api/providers/lab").json()["usedFor"]
    assert (used["vaults"], used["embedding"]) == (True, False)
    tried = client.call("POST", f"{PATH}/test", {"service": "embedding"}).json()
    assert (tried["ok"], tried["dimensions"], tried["code"]) == (True, 32, None)
    server.respond = lambda request: Answer(503)
    failed = client.call("POST", f"{PATH}/test", {"service": "embedding"}).json()
    assert (failed["ok"], failed["code"]) == (False, "upstream_error")
    refusal(client.call("PUT", PATH, {"revision": 0}), 409, "revision_conflict")
    refusal(client.call("DELETE", "/api/providers/lab"), 409, "in_use")
    gone = client.call("PUT", PATH, {"embeddingProviderModel": None}).json()
    assert gone["inForce"]["embedding"] is None
    refusal(client.call("POST", f"{PATH}/test", {"service": "embedding"}), 404, "not_found")


def test_the_file_is_told_with_the_name_of_the_variable_and_never_its_value(
    client: Any, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(settings, tmp_path, FILE)
    for value, has_key in (("", False), ("sk-secret-of-a-variable", True)):
        monkeypatch.setenv("VAULT_TEST_KEY", value)
        answer = client.call("GET", PATH)
        assert "sk-secret" not in answer.content.decode()
        found = answer.json()["inForce"]["embedding"]
        assert (found["origin"], found["provider"]) == ("config", None)
        assert (found["apiKeyEnv"], found["hasKey"]) == ("VAULT_TEST_KEY", has_key)
        assert found["host"] == "generativelanguage.googleapis.com"
    error = refusal(client.call("PUT", PATH, {"embeddingProviderModel": "lab/m"}), 409, "read_only")
    assert list(error["fields"]) == ["embeddingProviderModel"]
    changed = client.call("PUT", PATH, {"rerankProviderModel": "lab/m"})
    assert changed.json()["inForce"]["rerank"]["origin"] == "studio"


@pytest.mark.parametrize(
    "body",
    [
        {"embeddingProviderModel": "nobody/m"},
        {"embeddingProviderModel": "lab/" + "m" * 300},
        {"embeddingDimensions": 0},
        {"generationJsonMode": "yaml"},
        {"rerankProviderModel": 3},
        {"url": "https://elsewhere.example/"},
    ],
)
def test_what_cannot_be_chosen_is_refused_at_its_field(body: dict[str, Any], client: Any) -> None:
    error = refusal(client.call("PUT", PATH, body), 422, "invalid")
    assert list(error["fields"]) == list(body)


def test_the_status_of_a_vault_tells_service_host_and_origin(client: Any, server: Provider) -> None:
    made = client.call("POST", "/api/vaults", {"name": "library", "sealed": False}).json()
    path = f"/api/vaults/{made['id']}"
    plain = client.call("GET", path).json()
    assert (plain["embedding"]["backend"], plain["generation"], plain["rerank"]) == (
        "local",
        None,
        None,
    )
    body = {"embeddingProviderModel": "lab/e", "generationProviderModel": "lab/g"}
    client.call("PUT", PATH, {**body, "rerankProviderModel": "lab/r"})
    found = client.call("GET", path).json()
    host = f"127.0.0.1:{server.port}"
    for name, model in (("embedding", "e"), ("generation", "g"), ("rerank", "r")):
        told = found[name]
        assert (told["model"], told["host"], told["origin"]) == (model, host, "studio")
    assert found["generationHost"] == host
