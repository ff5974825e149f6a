"""Preview, reindex, compaction, engine status and health over REST."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from memory import wiring
from memory.models import Compaction, Memory, MemoryUse, Passage
from memory.principal import SCOPES
from memory.tests.asking import days_ago
from memory.tests.conftest import Work
from memory.tests.derived import lose_keywords, store_name
from memory.tests.rest import refusal

Api = Callable[..., Any]
PREVIEW = "/api/memory/retrieve-preview"
SUMMARIZE = "/api/memory/summarize"


@pytest.fixture
def alice(api: Api) -> Any:
    """A client of an ordinary key."""
    return api("alice")


@pytest.fixture
def manager(api: Api) -> Any:
    """A client that may do everything."""
    return api("manager", *SCOPES)


def _store(client: Any, *contents: str, age: float = 0) -> None:
    for content in contents:
        body = {"content": content, "key": content}
        memory_id = client.call("POST", "/api/memory", body).json()["id"]
        Memory.objects.filter(pk=memory_id).update(created_at=days_ago(age))


def test_preview_01_a_query_is_enough(alice: Any, work: Work) -> None:
    _store(alice, *(f"tea {place}" for place in range(30)))
    work()
    answer = alice.call("POST", PREVIEW, {"query": "tea"}).json()
    assert set(answer) == {
        "memories",
        "emptyReason",
        "nearest",
        "resolution",
        "totalTokensUsed",
        "budgetMaxTokens",
        "tookMs",
        "version",
        "trace",
    }
    assert (answer["budgetMaxTokens"], len(answer["memories"])) == (2000, 20)
    assert (answer["version"], answer["trace"]) == (1, None)
    resolution = answer["resolution"]
    assert (resolution["strategyUsed"], resolution["rerankApplied"]) == ("hybrid", False)
    assert (resolution["embeddingSource"], resolution["vectorStore"]) == ("local", store_name())
    assert (resolution["fallbackReason"], resolution["degraded"]) == (None, [])
    first = answer["memories"][0]
    assert {"id", "type", "key", "content", "score", "tokens", "tier", "vecScore", "ftsScore"} <= (
        set(first)
    )
    assert first["tier"] == "hybrid-rrf"


@pytest.mark.parametrize(
    ("strategy", "tier"),
    [("exact", "fts5"), ("semantic", "vector"), ("hybrid", "hybrid-rrf"), ("recent", "recent")],
)
def test_each_strategy_names_the_tier_that_answered(
    alice: Any, work: Work, strategy: str, tier: str
) -> None:
    _store(alice, "likes tea")
    work()
    body = {"query": "tea", "strategy": strategy, "trace": True}
    answer = alice.call("POST", PREVIEW, body).json()
    (hit,) = answer["memories"]
    assert (hit["tier"], answer["resolution"]["strategyUsed"]) == (tier, strategy)
    assert (hit["vecScore"] is None) == (strategy in ("exact", "recent"))
    assert (hit["ftsScore"] is None) == (strategy in ("semantic", "recent"))
    assert [stage["name"] for stage in answer["trace"]["stages"]]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "query"),
        ({"query": ""}, "query"),
        ({"query": "a\0"}, "query"),
        ({"query": "tea", "strategy": "magic"}, "strategy"),
        ({"query": "tea", "maxTokens": 0}, "maxTokens"),
        ({"query": "tea", "maxTokens": 16_001}, "maxTokens"),
        ({"query": "tea", "limit": 0}, "limit"),
        ({"query": "tea", "limit": 101}, "limit"),
        ({"query": "tea", "scope": "everything"}, "scope"),
        ({"query": "tea", "types": ["gossip"]}, "types.0"),
        ({"query": "tea", "match": "some"}, "match"),
    ],
)
def test_a_preview_out_of_bounds_is_422(alice: Any, body: dict[str, Any], field: str) -> None:
    error = refusal(alice.call("POST", PREVIEW, body), 422, "invalid")
    assert list(error["fields"]) == [field]


def test_a_query_that_is_too_long_is_422_by_its_own_code(alice: Any) -> None:
    refusal(alice.call("POST", PREVIEW, {"query": "a" * 1025}), 422, "query_too_long")


def test_a_preview_changes_nothing(alice: Any) -> None:
    _store(alice, "likes tea")
    before = list(Memory.objects.values())
    alice.call("POST", PREVIEW, {"query": "tea"})
    assert list(Memory.objects.values()) == before
    assert not MemoryUse.objects.exists()


def test_reindex_answers_its_job_and_what_waits(manager: Any, work: Work) -> None:
    _store(manager, "one", "two")
    first = manager.call("POST", "/api/memory/reindex").json()
    assert (first["started"], first["pending"]) == (True, 2)
    assert manager.call("POST", "/api/memory/reindex", {}).json()["jobId"] == first["jobId"]
    work()
    assert manager.call("POST", "/api/memory/reindex", {}).json()["pending"] == 0
    forced = manager.call("POST", "/api/memory/reindex", {"force": True}).json()
    assert forced["pending"] == 2


@pytest.mark.parametrize("body", [None, {}, {"dryRun": True}], ids=["no body", "empty", "dry"])
def test_a_compaction_without_candidates_is_a_dry_answer(alice: Any, body: Any) -> None:
    answer = alice.call("POST", SUMMARIZE, body).json()
    assert (answer["candidates"], answer["deletedCount"], answer["summaryId"]) == ([], 0, None)
    assert (answer["dryRun"], answer["totalTokens"]) == (True, 0)


def test_a_dry_run_shows_the_text_that_the_real_run_stores(alice: Any) -> None:
    _store(alice, "likes tea", "likes cocoa", age=60)
    dry = alice.call("POST", SUMMARIZE, {"dryRun": True}).json()
    assert (len(dry["candidates"]), dry["dryRun"]) == (2, True)
    real = alice.call("POST", SUMMARIZE).json()
    assert (real["dryRun"], real["deletedCount"], real["summarizedCount"]) == (False, 2, 2)
    stored = alice.call("GET", f"/api/memory/{real['summaryId']}").json()["memory"]
    assert [stored["content"]] == dry["summaries"][0]["texts"] == real["summaries"][0]["texts"]
    undo = alice.call("POST", f"{SUMMARIZE}/{real['summaryId']}/undo").json()
    assert (undo["success"], undo["restored"]) == (True, 2)
    refusal(alice.call("POST", f"{SUMMARIZE}/{real['summaryId']}/undo"), 409, "already_undone")


def test_an_undo_that_collides_is_409(alice: Any) -> None:
    _store(alice, "likes tea", age=60)
    real = alice.call("POST", SUMMARIZE).json()
    _store(alice, "likes tea")
    undo = f"{SUMMARIZE}/{real['summaries'][0]['compactionId']}/undo"
    refusal(alice.call("POST", undo), 409, "key_taken")


def test_tokens_over_the_budget_are_shortened(alice: Any) -> None:
    _store(alice, "Ash. Birch. Cedar. Dogwood.")
    body = {"mode": "tokens", "maxTokens": 0}
    dry = alice.call("POST", SUMMARIZE, {**body, "dryRun": True}).json()
    assert dry["candidates"][0]["newContent"] == "Ash. Birch. Cedar."
    real = alice.call("POST", SUMMARIZE, body).json()
    assert (real["tokensSaved"], real["deletedCount"], real["summaryId"]) == (2, 0, None)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"olderThanDays": 0}, "olderThanDays"),
        ({"olderThanDays": 366}, "olderThanDays"),
        ({"maxTokens": -1}, "maxTokens"),
        ({"mode": "magic"}, "mode"),
    ],
)
def test_a_compaction_out_of_bounds_is_422(alice: Any, body: dict[str, Any], field: str) -> None:
    error = refusal(alice.call("POST", SUMMARIZE, body), 422, "invalid")
    assert list(error["fields"]) == [field]


def test_a_key_that_may_only_read_previews_a_compaction_but_makes_none(api: Api) -> None:
    _store(api("alice"), "likes tea", age=60)
    reader = api("reader", "read")
    Memory.objects.update(api_key=_owner("reader"))
    assert len(reader.call("POST", SUMMARIZE, {"dryRun": True}).json()["candidates"]) == 1
    refusal(reader.call("POST", SUMMARIZE), 403, "scope_missing")
    assert not Compaction.objects.exists()


def _owner(name: str) -> int:
    from memory.models import ApiKey

    return ApiKey.objects.get(name=name).pk


def test_engine_status_01_what_is_packaged_serves_and_what_is_off_says_so(manager: Any) -> None:
    answer = manager.call("GET", "/api/memory/engine-status").json()
    tiers = {"keyword", "embedding", "vectorStore", "fusion", "rerank", "qdrant"}
    assert set(answer) == tiers | {"coverage"}
    assert answer["fusion"]["rule"] == "scores"
    assert (answer["embedding"]["source"], answer["embedding"]["available"]) == ("local", True)
    assert set(answer["embedding"]["cacheStats"]) == {"hits", "misses", "size"}
    assert answer["rerank"] == {
        "enabled": False,
        "provider": None,
        "model": None,
        "available": False,
        "reason": "rerank disabled",
    }
    assert answer["qdrant"]["enabled"] is False


def test_engine_status_03_the_keyword_tier_is_probed_for_real(manager: Any) -> None:
    def keyword() -> dict[str, Any]:
        found: dict[str, Any] = manager.call("GET", "/api/memory/engine-status").json()["keyword"]
        return found

    assert (keyword()["available"], keyword()["backend"]) == (
        True,
        "FTS5" if connection.vendor == "sqlite" else "Postgres",
    )
    lose_keywords()
    broken = keyword()
    assert broken["available"] is False
    assert broken["reason"]


def test_engine_status_counts_what_has_a_vector(manager: Any, work: Work) -> None:
    _store(manager, "one", "two")
    store = manager.call("GET", "/api/memory/engine-status").json()["vectorStore"]
    assert (store["available"], store["rowCount"], store["needsReindex"]) == (False, 0, 2)
    work()
    answer = manager.call("GET", "/api/memory/engine-status").json()
    assert (answer["vectorStore"]["rowCount"], answer["vectorStore"]["needsReindex"]) == (2, 0)
    assert (answer["coverage"]["percent"], answer["coverage"]["pending"]) == (100.0, 0)
    assert answer["embedding"]["dimensions"] == 64


def test_a_store_that_is_not_there_is_a_warning_with_its_name(manager: Any, work: Work) -> None:
    _store(manager, "one")
    work()
    manager.call("PUT", "/api/settings/memory", {"vectorStore": "sqlite-vec"})
    store = manager.call("GET", "/api/memory/engine-status").json()["vectorStore"]
    assert (store["available"], store["backend"]) == (True, store_name())
    assert "sqlite-vec" in store["reason"]


def test_health_is_a_round_trip_that_leaves_nothing_behind(alice: Any, work: Work) -> None:
    _store(alice, "likes tea")
    work()
    before = (Memory.objects.count(), Passage.objects.count(), wiring.keyword_index().count())
    for _ in range(3):
        answer = alice.call("GET", "/api/memory/health").json()
        assert (answer["working"], answer["error"]) == (True, None)
        assert answer["latencyMs"] > 0
    after = (Memory.objects.count(), Passage.objects.count(), wiring.keyword_index().count())
    assert after == before
    assert work() == 0


def test_health_says_what_is_broken(alice: Any) -> None:
    lose_keywords()
    response = alice.call("GET", "/api/memory/health")
    assert response.status_code == 200
    assert response.json()["working"] is False
    assert response.json()["error"]
    assert Memory.objects.count() == 0
