"""The pages of the gateway: settings, cost, receipts, and the preview of a request."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from memory.clock import now
from memory.models import ApiKey, InjectionDay, Memory, MemoryUse, Trace
from memory.principal import SYSTEM, Principal
from memory.services import access
from memory.services import settings as studio_settings
from memory.services.gateway import settings
from memory.tests.conftest import Remember, Work
from memory.tests.views.conftest import Studio

pytestmark = pytest.mark.django_db
SETTINGS: dict[str, Any] = {
    "injects": "on",
    "style": "classic",
    "scope": "session",
    "limit": 5,
    "budget_ms": 100,
    "idle_seconds": 60,
    "trace_days": 7,
}


def owner_of(principal: Principal) -> ApiKey:
    return access.find(principal.name)


def receipt_of(owner: ApiKey, **fields: Any) -> Trace:
    values: dict[str, Any] = {
        "protocol": "chat",
        "model": "gpt-5",
        "provider": "lab",
        "status": 200,
        "outcome": "ok",
        "memory": "injected",
        "tokens": 69,
        "place": "user_turn",
        "durations": {"retrieve": 4.2, "inject": 0.3, "ready": 6.0, "total": 812.5},
    }
    return Trace.objects.create(owner=owner, at=now(), **{**values, **fields})


def test_settings_of_chats_are_saved_and_refused(studio: Studio) -> None:
    saved = studio.post("/gateway/settings/", SETTINGS, target="gateway-settings", at="/gateway/")
    assert saved.status_code == 200 and "Settings saved." in saved.content.decode()
    assert settings.get().style == "classic" and settings.get().limit == 5
    bad = studio.post("/gateway/settings/", {**SETTINGS, "limit": 0})
    assert bad.status_code == 422 and "chat-limit_error" in bad.content.decode()
    plain = studio.post("/gateway/settings/", {**SETTINGS, "limit": 6})
    assert (plain.status_code, plain["Location"]) == (303, "/gateway/")
    assert settings.get().limit == 6


def test_a_key_is_capped_and_its_cost_is_shown(studio: Studio, alice: Principal) -> None:
    owner = owner_of(alice)
    path = f"/gateway/keys/{owner.uid}/"
    answer = studio.post(
        path, {"injection": "off", "daily_tokens": "90"}, target="gateway-keys", at="/gateway/"
    )
    assert "Saved for the key “alice”." in answer.content.decode()
    owner.refresh_from_db()
    assert (owner.injection, owner.daily_tokens) == ("off", 90)
    InjectionDay.objects.create(owner=owner, day=now().date(), tokens=1234, chats=3)
    for page in ("/gateway/", "/engine/"):
        assert "1,234" in studio.text(page)
    assert "spent" in studio.text("/gateway/")
    bad = studio.post(path, {"injection": "off", "daily_tokens": "-1"})
    assert bad.status_code == 422 and f"key-{owner.uid}-daily_tokens_error" in bad.content.decode()


def test_receipts_are_listed_by_key_and_by_what_memory_did(
    studio: Studio, alice: Principal, bob: Principal
) -> None:
    receipt_of(owner_of(alice))
    receipt_of(owner_of(bob), memory="late", outcome="left", status=0, model="other-model")
    both = studio.text("/receipts/")
    assert "gpt-5" in both and "other-model" in both and "2 receipts" in both
    late = studio.text("/receipts/?memory=late")
    assert "other-model" in late and "gpt-5" not in late
    alices = studio.text(f"/receipts/?owner={owner_of(alice).uid}")
    assert "gpt-5" in alices and "other-model" not in alices
    for odd in ("?memory=x", "?page=x", "?page=0", "?page=9999999999"):
        studio.text(f"/receipts/{odd}")


def test_many_receipts_have_pages(studio: Studio, alice: Principal) -> None:
    for _ in range(51):
        receipt_of(owner_of(alice))
    assert 'id="page-next"' in studio.text("/receipts/")
    assert 'id="page-previous"' in studio.text("/receipts/?page=2")


def test_one_receipt_tells_everything(studio: Studio, alice: Principal, remember: Remember) -> None:
    memory = remember(alice, "likes green tea")
    hits = [
        {"id": str(memory.pk), "tier": "hybrid", "score": 0.91},
        {"id": str(uuid.uuid4()), "tier": "keyword", "score": 0.1},
    ]
    trace = receipt_of(
        owner_of(alice),
        retrieved=hits,
        injected=[str(memory.pk)],
        learnt=[str(memory.pk)],
        degraded=[["vector", "loading"]],
        session_id="desk",
        text={"query": "what tea?", "injected": "<notes>", "reply": ""},
    )
    page = studio.text(f"/receipts/{trace.pk}/")
    assert page.count(">likes green tea<") == 2
    for said in ("is not there any more", "812.5 ms", "desk", "&lt;notes&gt;", "what tea?"):
        assert said in page
    assert studio.get(f"/receipts/{uuid.uuid4()}/").status_code == 404


def test_the_playground_shows_the_request_that_would_be_sent(
    studio: Studio, alice: Principal, remember: Remember, work: Work
) -> None:
    remember(alice, "likes green tea")
    work()
    owner = owner_of(alice)
    assert "playground-request" in studio.text(f"/playground/?q=green+tea&owner={owner.uid}")
    query = "/playground/request/?q=green+tea&protocol="
    for protocol in ("chat", "responses", "messages"):
        part = studio.text(query + protocol, target="playground-request")
        assert "likes green tea" in part and "<html" not in part
    assert "Memory is switched off" in studio.text(query + "chat")
    studio_settings.update(SYSTEM, {"enabled": True})
    assert "Memory is switched off" not in studio.text(query + "chat")
    assert studio.get("/playground/request/?protocol=x").status_code == 422
    assert not MemoryUse.objects.filter(access_count__gt=0).exists()
    assert Memory.objects.count() == 1 and not Trace.objects.exists()
