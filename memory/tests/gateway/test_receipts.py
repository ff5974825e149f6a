"""Receipts, what memory costs, its daily cap, and previews, over REST."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from memory.clock import now
from memory.models import ApiKey, AuditEntry, InjectionDay, Memory, MemoryUse, Trace
from memory.principal import SYSTEM
from memory.services import housekeeping, memories, providers
from memory.services.gateway import traces
from memory.tests.conftest import Remember, Work
from memory.tests.gateway.conftest import CHAT, World, user
from memory.tests.gateway.test_injection import ASKED, DARK, knowing, sent
from memory.tests.rest import MISSING, refusal

pytestmark = pytest.mark.django_db(transaction=True)
__all__ = ["knowing"]
Api = Callable[..., Any]


def test_a_receipt_tells_what_happened_in_ids_and_numbers(knowing: World, api: Api) -> None:
    answered = knowing.say(CHAT, user(ASKED, stream=True), x_session_id="desk")
    chief = api("chief", "read", "manage")
    trace_id = answered.headers["x-memory-trace-id"]
    found = chief.call("GET", f"/api/traces/{trace_id}").json()
    memory = Memory.objects.get()
    assert found["injected"] == [str(memory.pk)] == [hit["id"] for hit in found["retrieved"]]
    assert (found["memory"], found["outcome"], found["status"]) == ("injected", "ok", 200)
    assert (found["protocol"], found["provider"], found["model"]) == ("chat", "lab", "small")
    assert (found["sessionId"], found["stream"], found["place"]) == ("desk", True, "user_turn")
    assert set(found["durations"]) == {"retrieve", "inject", "ready", "upstream", "total"}
    assert found["tokens"] > 0 and found["text"] is None
    assert DARK not in str(found)
    (listed,) = chief.call("GET", "/api/traces").json()["data"]
    assert {**listed, "text": None} == found


def test_a_key_reads_its_own_receipts_only(knowing: World, api: Api) -> None:
    knowing.say(CHAT, user("hi"))
    other, own = api("other"), api("app", "read")
    ApiKey.objects.filter(name="app").update(scopes=["read", "chat"])
    path = f"/api/traces/{Trace.objects.get().pk}"
    assert own.call("GET", path).status_code == 200
    refusal(other.call("GET", path), 404, "not_found")
    assert other.call("GET", f"/api/traces?apiKeyId={knowing.key.uid}").json()["total"] == 0
    refusal(other.call("GET", "/api/traces/nonsense"), 404, "not_found")


def test_receipts_are_listed_by_what_is_asked_for(knowing: World, api: Api) -> None:
    chief = api("chief", "read", "manage")
    knowing.say(CHAT, user(ASKED), x_session_id="a")
    knowing.say(CHAT, user("hi"), x_memory_opt_out="1")

    def total(query: str) -> int:
        return int(chief.call("GET", f"/api/traces?{query}").json()["total"])

    assert (total(""), total("memory=injected"), total("memory=opted_out")) == (2, 1, 1)
    assert (total("sessionId=a"), total("sessionId=b")) == (1, 0)
    assert (total(f"apiKeyId={knowing.key.uid}"), total("apiKeyId=chief")) == (2, 0)
    assert total("since=2000-01-01T00:00:00Z&until=2001-01-01T00:00:00Z") == 0
    page = chief.call("GET", "/api/traces?limit=1&page=2").json()
    assert (len(page["data"]), page["totalPages"]) == (1, 2)
    assert chief.call("GET", "/api/traces?memory=x").status_code == 422


def test_texts_are_kept_only_when_that_is_switched_on_and_go_with_a_memory(
    knowing: World, api: Api
) -> None:
    knowing.switch_on(traceText=True)
    knowing.say(CHAT, user(ASKED, stream=True))
    path = f"/api/traces/{Trace.objects.get().pk}"
    text = api("chief", "read", "manage").call("GET", path).json()["text"]
    assert (text["query"], text["reply"]) == (ASKED, "You said 你好.")
    assert DARK in text["injected"]
    assert AuditEntry.objects.filter(action="trace.read").exists()
    memories.delete(SYSTEM, Memory.objects.get().pk, purge=True)
    assert Trace.objects.get().text is None


def test_what_no_database_holds_is_left_out(world: World) -> None:
    world.switch_on(traceText=True)
    bad = "x\\u0000\\ud800y"
    raw = '{"model": "BAD", "messages": [{"role": "user", "content": "BAD"}]}'.replace("BAD", bad)
    assert world.say(CHAT, raw.encode()).status == 200
    found = world.receipt()
    assert found.text is not None
    assert (found.model, found.text["query"]) == ("xy", "x?y")


def test_old_receipts_are_removed(knowing: World) -> None:
    knowing.say(CHAT, user("hi"))
    Trace.objects.update(at=now() - timedelta(days=29))
    assert traces.prune() == 0
    Trace.objects.update(at=now() - timedelta(days=31))
    housekeeping.cleanup()
    assert not Trace.objects.exists()


def test_what_was_learnt_is_added_once(knowing: World) -> None:
    knowing.say(CHAT, user("hi"))
    trace = Trace.objects.get()
    for ids in (["a"], ["a", "b"], []):
        traces.learnt(trace.pk, ids)
    trace.refresh_from_db()
    assert trace.learnt == ["a", "b"]


def test_the_meter_counts_by_key_and_day(knowing: World, api: Api) -> None:
    chief = api("chief", "read", "manage")
    cost = int(knowing.say(CHAT, user(ASKED)).headers["x-memory-tokens"])
    knowing.say(CHAT, user(ASKED), x_memory_opt_out="1")
    for days, tokens in ((5, 7), (40, 9)):
        day = now().date() - timedelta(days=days)
        InjectionDay.objects.create(owner=knowing.key, day=day, tokens=tokens)
    found = chief.call("GET", "/api/gateway/usage").json()["data"]
    rows = {row["apiKeyName"]: row for row in found}
    row = rows["app"]
    assert (row["tokensToday"], row["tokensMonth"]) == (cost, cost + 7)
    assert (row["chatsMonth"], row["injectedMonth"], row["failuresMonth"]) == (2, 1, 0)
    assert rows["chief"]["chatsMonth"] == 0
    mine = api("other").call("GET", "/api/gateway/usage").json()["data"]
    assert [row["apiKeyName"] for row in mine] == ["other"]


def test_a_key_that_has_spent_its_day_is_given_nothing_more(knowing: World, api: Api) -> None:
    chief = api("chief", "read", "manage")
    path = f"/api/gateway/keys/{knowing.key.uid}"
    cost = int(knowing.say(CHAT, user(ASKED)).headers["x-memory-tokens"])
    changed = chief.call("PUT", path, {"injection": "on", "dailyTokens": 2 * cost + 1}).json()
    assert (changed["injection"], changed["dailyTokens"]) == ("on", 2 * cost + 1)
    spent = [knowing.say(CHAT, user(ASKED)).headers["x-memory-tokens"] for _ in range(3)]
    assert spent == [str(cost), "0", "0"]
    assert DARK not in sent(knowing)
    assert Trace.objects.first().memory == "capped"  # type: ignore[union-attr]
    assert InjectionDay.objects.get().tokens == 2 * cost
    chief.call("PUT", path, {"injection": "inherit"})
    assert knowing.say(CHAT, user(ASKED)).headers["x-memory-tokens"] == str(cost)


@pytest.mark.parametrize("cap", [None, 1000])
def test_a_chat_that_reaches_nobody_costs_nothing(knowing: World, cap: int | None) -> None:
    ApiKey.objects.filter(pk=knowing.key.pk).update(daily_tokens=cap)
    providers.update(SYSTEM, "lab", {"base_url": "http://127.0.0.1:9/v1"})
    answered = knowing.say(CHAT, user(ASKED))
    assert (answered.status, answered.headers["x-memory-injected"]) == (502, "1")
    day = InjectionDay.objects.get()
    assert (day.chats, day.injected, day.tokens) == (1, 0, 0)


@pytest.mark.parametrize(
    "body", [{"injection": "maybe"}, {"injection": "on", "dailyTokens": -1}, {"dailyTokens": 1}]
)
def test_a_key_cannot_be_set_to_nonsense(world: World, api: Api, body: dict[str, Any]) -> None:
    path = f"/api/gateway/keys/{world.key.uid}"
    assert api("chief", "manage").call("PUT", path, body).status_code == 422
    refusal(api("app2").call("PUT", path, {"injection": "on"}), 403, "scope_missing")
    refusal(
        api("chief").call("PUT", path.replace(str(world.key.uid), MISSING), {"injection": "on"}),
        404,
        "not_found",
    )


def test_a_preview_is_the_very_request_that_would_be_sent(knowing: World, api: Api) -> None:
    chief = api("chief", "read", "manage")
    body = {**user(ASKED), "model": "lab/small", "temperature": 0.5}
    asked = {"body": body, "apiKeyId": "app"}
    found = chief.call("POST", "/api/gateway/preview", asked).json()
    assert (found["memory"], found["provider"], found["place"]) == ("injected", "lab", "user_turn")
    assert not knowing.upstream.requests and not Trace.objects.exists()
    assert not MemoryUse.objects.filter(access_count__gt=0).exists()
    answered = knowing.say(CHAT, body)
    assert knowing.upstream.last == found["request"]
    assert answered.headers["x-memory-tokens"] == str(found["tokens"])
    actor = AuditEntry.objects.get(action="retrieve.preview").actor
    assert actor == "key:chief"


def test_a_preview_may_assume_that_memory_is_on(
    world: World, api: Api, remember: Remember, work: Work
) -> None:
    own = api("writer", "read", "write")
    own.call("POST", "/api/memory", {"content": DARK, "key": "dark"})
    work()
    for protocol, body in (("messages", user(ASKED)), ("responses", {"input": ASKED})):
        asked = {"body": body, "protocol": protocol}
        off = own.call("POST", "/api/gateway/preview", asked).json()
        assert (off["memory"], off["request"], off["provider"]) == ("off", body, None)
        on = own.call("POST", "/api/gateway/preview", {**asked, "assumeOn": True}).json()
        assert DARK in str(on["request"]) and on["memory"] == "injected"
    headers = {"X-Memory-Opt-Out": "yes"}
    out = own.call(
        "POST", "/api/gateway/preview", {"body": user(ASKED), "headers": headers, "assumeOn": True}
    )
    assert out.json()["memory"] == "opted_out"
