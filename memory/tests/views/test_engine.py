"""The Engine: tiers, reindex, settings, keys and the password."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from memory.models import ApiKey, Job
from memory.principal import Principal
from memory.services import settings as settings_service
from memory.services import signin
from memory.tests.conftest import ApiClient, Remember, Work
from memory.tests.views.conftest import Studio

SETTINGS: dict[str, Any] = {
    "max_tokens": "2000",
    "strategy": "hybrid",
    "fusion": "scores",
    "retention_days": "30",
    "embedding_source": "auto",
    "local_model": "multilingual-e5-small",
    "vector_store": "auto",
    "primary_backend": "sqlite",
    "custom_protocol": "compatible",
    "rerank": "none",
    "rerank_protocol": "seed",
    "floor": "off",
}

CONFIGS = """{
    "one": {"baseUrl": "https://one.test", "apiKey": "one-secret-key-99"},
    "two": {"baseUrl": "https://two.test"}
}"""


def test_every_tier_has_a_card_with_its_state(studio: Studio) -> None:
    body = studio.text("/engine/")
    assert re.findall(r"<h3>([^<]+)</h3>", body) == [
        "Keyword",
        "Embedding",
        "Vector store",
        "Fusion",
        "Rerank",
        "Qdrant",
    ]
    assert "Reranking is switched off." in body


def test_the_cost_warning_names_the_budget(studio: Studio) -> None:
    studio.post("/engine/settings/", SETTINGS | {"max_tokens": "3500"})
    body = " ".join(studio.text("/engine/").split())
    assert "up to <b>3,500</b> extra tokens" in body


def test_settings_are_saved_and_shown(studio: Studio) -> None:
    data = SETTINGS | {
        "enabled": "on",
        "strategy": "recent",
        "days_episodic": "7",
        "fallback_backends": "one, two",
        "backend_configs": CONFIGS,
        "custom_api_key": "sk-secret-1234",
    }
    response = studio.post("/engine/settings/", data, target="engine-settings")
    assert response["HX-Retarget"] == "#engine-settings"
    assert "Settings saved." in response.content.decode()
    saved = settings_service.get()
    assert (saved.enabled, saved.strategy) == (True, "recent")
    assert saved.retention_by_type == {"episodic": 7}
    assert saved.fallback_backends == ("one", "two")
    page = studio.text("/engine/")
    assert "sk-secret" not in page
    assert "one-secret" not in page
    assert "***y-99" in page
    studio.post("/engine/settings/", SETTINGS)
    assert settings_service.get().custom_api_key == saved.custom_api_key


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_tokens", "20000"),
        ("retention_days", "0"),
        ("days_factual", "366"),
        ("strategy", "exact"),
        ("custom_base_url", "ftp://host/"),
        ("custom_base_url", "https://user:pass@host/"),
        ("custom_base_url", "https://host/?key=1"),
        ("backend_configs", "[1]"),
        ("backend_configs", "{"),
    ],
)
def test_a_setting_out_of_bounds_is_refused_at_its_field(
    studio: Studio, field: str, value: str
) -> None:
    before = settings_service.get()
    response = studio.post("/engine/settings/", SETTINGS | {field: value}, target="engine-settings")
    assert response.status_code == 422
    assert f'id="set-{field}_error"' in response.content.decode()
    assert settings_service.get() == before


def test_qdrant_is_configured_without_showing_its_key(studio: Studio) -> None:
    data = {
        "qdrant_enabled": "on",
        "qdrant_host": "qdrant.internal",
        "qdrant_port": "6334",
        "qdrant_collection": "memories",
        "qdrant_embedding_model": "x/y",
        "qdrant_quantization": "int8",
        "qdrant_api_key": "q-secret",
    }
    body = studio.post("/engine/qdrant/", data, target="engine-qdrant").content.decode()
    assert "Qdrant settings saved." in body
    saved = settings_service.get()
    assert (saved.qdrant_host, saved.qdrant_port, saved.vector_store) == (
        "qdrant.internal",
        6334,
        "qdrant",
    )
    assert "q-secret" not in studio.text("/engine/")


def test_running_work_is_polled_and_finished_work_is_not(
    studio: Studio, alice: Principal, remember: Remember, work: Work
) -> None:
    remember(alice, "likes tea")
    work()
    body = studio.post("/engine/reindex/", {"force": "1"}, target="engine-work").content.decode()
    assert "every 1s" in body
    assert "Cancel" in body
    studio.post("/engine/reindex/", target="engine-work")
    assert Job.objects.filter(state="queued").count() == 1
    work()
    done = studio.get("/engine/", target="engine-work")
    assert "every 1s" not in done.content.decode()
    assert done["HX-Trigger"] == "job-ended"
    assert "100.0" in done.content.decode()


def test_a_running_job_is_cancelled_from_the_list(
    studio: Studio, alice: Principal, remember: Remember, work: Work
) -> None:
    remember(alice, "likes tea")
    work()
    studio.post("/engine/reindex/", {"force": "1"}, target="engine-work")
    job = Job.objects.get(state="queued")
    body = studio.post(f"/jobs/{job.pk}/cancel/", target="engine-work").content.decode()
    assert 'id="engine-work"' in body
    assert "Retry" in body


def test_health_does_a_real_round_trip_and_is_remembered(studio: Studio) -> None:
    assert "not checked" in studio.text("/")
    assert "healthy" in studio.post("/health/check/", target="health").content.decode()
    assert "healthy" in studio.text("/engine/")


def test_a_new_key_shows_its_secret_once(studio: Studio) -> None:
    response = studio.post(
        "/engine/keys/add/", {"name": "app", "scopes": ["read", "write"]}, target="dialog"
    )
    found = re.search(r'value="(ms_[^"]+)"', response.content.decode())
    assert found is not None
    assert response["Cache-Control"] == "no-store"
    assert ApiKey.objects.get(name="app").scopes == ["read", "write"]
    page = studio.text("/engine/")
    assert found[1] not in page
    assert found[1][-4:] in page


@pytest.mark.parametrize(
    "data", [{"name": "", "scopes": ["read"]}, {"name": "x"}, {"name": "x", "scopes": ["root"]}]
)
def test_a_key_without_name_or_scopes_is_refused(studio: Studio, data: dict[str, Any]) -> None:
    response = studio.post("/engine/keys/add/", data, target="dialog")
    assert response.status_code == 422
    assert not ApiKey.objects.filter(name="x").exists()


def test_a_taken_name_is_a_conflict(studio: Studio, alice: Principal) -> None:
    data = {"name": "alice", "scopes": ["read"]}
    response = studio.post("/engine/keys/add/", data, target="dialog")
    assert response.status_code == 409
    assert "Another key has this name." in response.content.decode()


def test_a_new_secret_is_shown_once_and_replaces_the_old_one(
    studio: Studio, api: Callable[..., ApiClient]
) -> None:
    old = api("app")
    uid = ApiKey.objects.get(name="app").uid
    response = studio.post(f"/engine/keys/{uid}/rotate/", target="dialog")
    found = re.search(r'value="(ms_[^"]+)"', response.content.decode())
    assert found is not None
    assert response["Cache-Control"] == "no-store"
    assert ApiClient(found[1]).call("GET", "/api/memory").status_code == 200
    assert old.call("GET", "/api/memory").status_code == 401
    assert found[1] not in studio.text("/engine/")


def test_a_revoked_key_keeps_its_memories(
    studio: Studio, alice: Principal, remember: Remember
) -> None:
    remember(alice, "likes tea")
    uid = ApiKey.objects.get(name="alice").uid
    body = studio.post(f"/engine/keys/{uid}/revoke/", target="engine-keys").content.decode()
    assert "is revoked. Its memories stay." in body
    assert ApiKey.objects.get(name="alice").revoked_at is not None
    assert "likes tea" in studio.text("/")


def test_a_password_is_set_and_the_session_stays(studio: Studio) -> None:
    data = {"password": "correct horse battery", "again": "correct horse battery"}
    body = studio.post("/engine/password/", data, target="engine-password").content.decode()
    assert "Password set." in body
    assert studio.get("/engine/").status_code == 200
    assert Client().login(username=signin.USERNAME, password="correct horse battery")


@pytest.mark.parametrize(
    ("password", "again", "message"),
    [("correct horse", "other horse", "differ"), ("12345", "12345", "too short")],
)
def test_a_weak_or_mistyped_password_is_refused(
    studio: Studio, password: str, again: str, message: str
) -> None:
    data = {"password": password, "again": again}
    response = studio.post("/engine/password/", data, target="engine-password")
    assert response.status_code == 422
    assert message in response.content.decode()


@pytest.mark.parametrize("inner", ["NaN", "1e999", '"\\ud800"', '"\\u0000"'])
def test_what_no_database_can_hold_is_refused_at_its_field(studio: Studio, inner: str) -> None:
    data = SETTINGS | {"backend_configs": f'{{"remote": {{"a": {inner}}}}}'}
    assert studio.post("/engine/settings/", data).status_code == 422


def test_an_address_with_an_impossible_port_is_refused(studio: Studio) -> None:
    data = SETTINGS | {"custom_base_url": "http://models.example:99999/v1"}
    assert studio.post("/engine/settings/", data).status_code == 422
