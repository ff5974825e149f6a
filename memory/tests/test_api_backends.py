"""``/api/memory/backends``, and the settings that configure backends."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.backends.config import read
from memory import backend_secrets, backend_wiring
from memory.models import EngineSettings, Job
from memory.principal import SCOPES, Principal
from memory.services import memories
from memory.tests.backends import Brain, brain, configure
from memory.tests.conftest import Remember
from memory.tests.rest import refusal

Api = Callable[..., Any]
SETTINGS = "/api/settings/memory"
BACKENDS = "/api/memory/backends"
SECRET = "a-long-secret-key-1234"
CONFIG = {
    "baseUrl": "https://brain.test",
    "apiKey": SECRET,
    "headers": {"X-Team": "red-secret-team"},
}


@pytest.fixture
def manager(api: Api) -> Any:
    """A client that may do everything."""
    return api("manager", *SCOPES)


@pytest.fixture
def running(first_start: None) -> Iterator[Brain]:
    """A service that is up."""
    with brain() as made:
        yield made


def put(manager: Any, **changes: Any) -> Any:
    """Change settings."""
    return manager.call("PUT", SETTINGS, changes)


def test_our_own_tables_are_the_only_backend_of_a_fresh_start(manager: Any) -> None:
    answer = manager.call("GET", BACKENDS).json()
    (only,) = answer["backends"]
    assert (answer["primary"], answer["fallbacks"], answer["warning"]) == ("sqlite", [], None)
    assert (only["id"], only["isPrimary"], only["health"]["ok"]) == ("sqlite", True, True)


def test_every_backend_is_listed_with_its_real_health(manager: Any, running: Brain) -> None:
    configure("brain", ["sqlite", "other"], brain=running.config, other=CONFIG)
    answer = manager.call("GET", BACKENDS).json()
    assert (answer["primary"], answer["fallbacks"]) == ("brain", ["sqlite", "other"])
    by_id = {row["id"]: row for row in answer["backends"]}
    assert list(by_id) == ["sqlite", "brain", "other"]
    assert by_id["brain"]["isPrimary"] is True
    assert by_id["brain"]["health"]["ok"] is True
    assert by_id["brain"]["health"]["latencyMs"] > 0
    assert by_id["brain"]["config"] == {
        "baseUrl": running.config["baseUrl"],
        "hasApiKey": True,
        "backendType": None,
    }
    assert by_id["other"]["isFallback"] is True
    assert by_id["other"]["health"]["ok"] is False
    assert "GET /memories/search" in running.calls


def test_a_backend_that_is_down_says_why_in_words(manager: Any, running: Brain) -> None:
    configure("brain", brain=running.config)
    running.goes_down()
    (_local, row) = manager.call("GET", BACKENDS).json()["backends"]
    assert row["health"]["error"] == "The memory backend cannot be reached."
    assert row["health"]["code"] == "unreachable"


def test_without_a_check_nobody_is_asked(manager: Any, running: Brain) -> None:
    configure("brain", brain=running.config)
    (_local, row) = manager.call("GET", BACKENDS, check="false").json()["backends"]
    assert row["health"] is None
    assert running.calls == []


@pytest.mark.parametrize("action", ["copy", "pull"])
def test_transfers_are_jobs(manager: Any, running: Brain, action: str) -> None:
    configure("sqlite", brain=running.config)
    answer = manager.call("POST", f"{BACKENDS}/brain/{action}").json()
    assert (answer["kind"], answer["state"]) == (f"backend-{action}", "queued")
    refusal(manager.call("POST", f"{BACKENDS}/brain/{action}"), 409, "already_running")
    refusal(manager.call("POST", f"{BACKENDS}/other/{action}"), 404, "not_found")
    assert Job.objects.filter(kind=f"backend-{action}").count() == 1


def test_backends_are_for_managers(api: Api, running: Brain) -> None:
    configure("sqlite", brain=running.config)
    alice = api("alice", "read", "write")
    refusal(alice.call("GET", BACKENDS), 403, "scope_missing")
    refusal(alice.call("POST", f"{BACKENDS}/brain/copy"), 403, "scope_missing")


def test_secrets_are_sealed_and_never_returned(manager: Any) -> None:
    answer = put(manager, backendConfigs={"brain": CONFIG})
    assert answer.status_code == 200
    for text in (answer.content, manager.call("GET", SETTINGS).content):
        assert SECRET.encode() not in text
        assert b"red-secret-team" not in text
    stored = json.dumps(EngineSettings.objects.get().stored)
    assert SECRET not in stored
    assert "red-secret-team" not in stored
    config = backend_wiring.plan().configs["brain"]
    assert config.address.headers == {
        "X-Team": "red-secret-team",
        "Authorization": f"Bearer {SECRET}",
    }


def test_what_was_read_can_be_sent_back_and_keeps_its_secrets(manager: Any) -> None:
    put(manager, backendConfigs={"brain": CONFIG})
    shown = manager.call("GET", SETTINGS).json()["backendConfigs"]
    assert shown["brain"]["apiKey"] == "***1234"
    shown["brain"]["timeout"] = 5000
    put(manager, backendConfigs=shown)
    config = backend_wiring.plan().configs["brain"]
    assert config.address.timeout_ms == 5000
    assert config.address.headers["Authorization"] == f"Bearer {SECRET}"


def test_a_new_secret_replaces_the_old_one_and_none_removes_it(manager: Any) -> None:
    put(manager, backendConfigs={"brain": CONFIG})
    put(manager, backendConfigs={"brain": {**CONFIG, "apiKey": "another-key"}})
    assert backend_wiring.plan().configs["brain"].address.headers["Authorization"] == (
        "Bearer another-key"
    )
    put(manager, backendConfigs={"brain": {"baseUrl": "https://brain.test"}})
    assert backend_wiring.plan().configs["brain"].has_key is False


def test_a_short_secret_is_not_half_shown() -> None:
    assert backend_secrets.mask("abcd") == "***"


def test_a_key_may_come_from_a_variable(manager: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRAIN_API_KEY", "from-the-environment")
    config = {"baseUrl": "https://brain.test", "apiKeyEnv": "BRAIN_API_KEY"}
    put(manager, backendConfigs={"brain": config})
    headers = backend_wiring.plan().configs["brain"].address.headers
    assert headers["Authorization"] == "Bearer from-the-environment"


@pytest.mark.parametrize("name", ["MEMORY_STUDIO_SECRET_KEY", "PGPASSWORD", "https_proxy"])
def test_our_own_secrets_are_no_keys_of_backends(
    manager: Any, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "ours")
    config = {"baseUrl": "https://evil.test", "apiKeyEnv": name}
    put(manager, backendConfigs={"brain": config})
    assert "Authorization" not in backend_wiring.plan().configs["brain"].address.headers


BAD = [
    ({"baseUrl": "http://127.0.0.1:1"}, "baseUrl"),
    ({"baseUrl": "http://localhost:27123"}, "baseUrl"),
    ({"baseUrl": "http://10.0.0.1"}, "baseUrl"),
    ({"baseUrl": "http://metadata.google.internal"}, "baseUrl"),
    ({"baseUrl": "http://169.254.169.254", "allowPrivate": True, "allowLoopback": True}, "baseUrl"),
    ({"baseUrl": "file:///etc/passwd"}, "baseUrl"),
    ({"baseUrl": "https://user:pass@brain.test"}, "baseUrl"),
    ({"baseUrl": 1}, "baseUrl"),
    ({"baseUrl": "https://b.test", "adapter": "ftp"}, "adapter"),
    ({"baseUrl": "https://b.test", "timeout": 1}, "timeout"),
    ({"baseUrl": "https://b.test", "timeout": "soon"}, "timeout"),
    ({"baseUrl": "https://b.test", "headers": {"X": "a\r\nHost: evil"}}, "headers.X"),
    ({"baseUrl": "https://b.test", "headers": {"Host": "evil"}}, "headers.Host"),
    ({"baseUrl": "https://b.test", "apiKey": "clé"}, "apiKey"),
    ({"baseUrl": "https://b.test", "endpoints": {"get": "https://evil"}}, "endpoints.get"),
    ({"baseUrl": "https://b.test", "endpoints": {"get": "/a/../b"}}, "endpoints.get"),
    ({"baseUrl": "https://b.test", "endpoints": {"got": "/a"}}, "endpoints.got"),
    ({"baseUrl": "https://b.test", "queryParams": {"query": "a&b"}}, "queryParams.query"),
    ({"baseUrl": "https://b.test", "certificate": "x"}, "certificate"),
    ({"adapter": "obsidian", "folder": "../x"}, "folder"),
    ({"adapter": "notion", "databaseId": "x"}, "databaseId"),
]


@pytest.mark.parametrize(("config", "place"), BAD, ids=range(len(BAD)))
def test_a_configuration_that_cannot_serve_is_refused_at_its_place(
    manager: Any, config: dict[str, Any], place: str
) -> None:
    error = refusal(put(manager, backendConfigs={"brain": config}), 422, "invalid")
    assert list(error["fields"]) == [f"backendConfigs.brain.{place}"]
    assert backend_wiring.plan().configs == {}


@pytest.mark.parametrize("config", [{}, {"adapter": "notion"}, {"adapter": "obsidian-folder"}])
def test_what_lacks_something_may_be_kept_but_not_serve(
    manager: Any, config: dict[str, Any]
) -> None:
    assert put(manager, backendConfigs={"brain": config}).status_code == 200
    refusal(put(manager, primaryBackend="brain"), 422, "invalid")
    row = manager.call("GET", BACKENDS).json()["backends"][1]
    assert (row["id"], row["health"]) == ("brain", None)
    assert row["problem"].endswith("is needed.")


@pytest.mark.parametrize("changes", [{"primaryBackend": "x"}, {"fallbackBackends": ["x"]}])
def test_backend_manager_06_a_backend_that_is_not_there_cannot_be_chosen(
    manager: Any, changes: dict[str, Any]
) -> None:
    error = refusal(put(manager, **changes), 422, "invalid")
    assert list(error["fields"]) == list(changes)


def test_a_stored_primary_that_cannot_be_built_leaves_our_tables_serving(
    manager: Any, alice: Principal, remember: Remember
) -> None:
    EngineSettings.objects.update_or_create(
        pk=1, defaults={"stored": {"memoryPrimaryBackend": "legacy"}}
    )
    backend_wiring.reset()
    assert remember(alice, "likes tea").content == "likes tea"
    answer = manager.call("GET", BACKENDS).json()
    assert answer["primary"] == "sqlite"
    assert "legacy" in answer["warning"]


def test_the_presets_need_no_address() -> None:
    assert read("obsidian", {}).address.base_url == "http://127.0.0.1:27123"
    notion = read("notion", {"databaseId": "0" * 32})
    assert notion.address.base_url == "https://api.notion.com/v1"
    assert notion.address.headers == {"Notion-Version": "2022-06-28"}


def test_a_folder_of_notes_lies_below_the_roots(
    manager: Any, settings: Any, tmp_path: Path, alice: Principal
) -> None:
    (tmp_path / "vaults" / "notes").mkdir(parents=True)
    settings.MEMORY_STUDIO_VAULT_ROOTS = [str(tmp_path / "vaults")]
    config = {"adapter": "obsidian-folder", "path": "notes", "folder": "Memories"}
    assert put(manager, backendConfigs={"notes": config}, primaryBackend="notes").status_code == 200
    memory = memories.get(alice, _made(alice))
    files = list((tmp_path / "vaults" / "notes" / "Memories").iterdir())
    assert len(files) == 1
    assert files[0].read_text(encoding="utf-8").endswith("---\nlikes tea")
    assert memory.key == "tea"


def _made(alice: Principal) -> Any:
    from memory.services.drafts import MemoryDraft

    return memories.create(alice, MemoryDraft("likes tea", "tea"))[0].pk


@pytest.mark.parametrize("path", ["/etc", "../..", "notes/../../x"])
def test_a_folder_outside_the_roots_does_not_serve(
    manager: Any, settings: Any, tmp_path: Path, path: str
) -> None:
    settings.MEMORY_STUDIO_VAULT_ROOTS = [str(tmp_path)]
    config = {"adapter": "obsidian-folder", "path": path}
    error = refusal(
        put(manager, backendConfigs={"notes": config}, primaryBackend="notes"), 422, "invalid"
    )
    assert list(error["fields"]) == ["backendConfigs.notes.path"]
