"""What one retrieval brings, in which order, within which bounds, and its account."""

from __future__ import annotations

import json

import pytest

from engine.types import Mode, Tier
from memory import wiring
from memory.api.present import preview_out
from memory.errors import Invalid
from memory.models import AuditEntry, MemoryUse, Passage, RetrievalCount
from memory.principal import Principal
from memory.services import listing, memories, status
from memory.services import settings as studio_settings
from memory.services.retrieval import RetrieveRequest, retrieve
from memory.tests.asking import ask, contents, days_ago
from memory.tests.conftest import Remember, Work


def test_retrieval_02_keyword_without_a_query_is_the_owners_newest_first(
    alice: Principal, bob: Principal, remember: Remember
) -> None:
    for place in range(3):
        remember(alice, f"alice {place}", created_at=days_ago(3 - place))
    remember(bob, "bob 0")
    remember(bob, "bob 1")
    assert ask(alice, " ") == ["alice 2", "alice 1", "alice 0"]


@pytest.mark.parametrize("mode", list(Mode), ids=str)
def test_retrieval_05_a_blank_query_brings_the_newest(
    alice: Principal, remember: Remember, mode: Mode
) -> None:
    for age, name in ((3, "old"), (2, "mid"), (1, "new")):
        remember(alice, name, created_at=days_ago(age))
    view = retrieve(alice, RetrieveRequest("", mode=mode))
    assert contents(view) == ["new", "mid", "old"]
    assert view.retrieval.tier is Tier.RECENT


def test_retrieval_config_02_recent_ignores_the_query(alice: Principal, remember: Remember) -> None:
    remember(alice, "one", created_at=days_ago(1))
    remember(alice, "two")
    assert ask(alice, "one", mode=Mode.RECENT) == ["two", "one"]


def test_retrieval_06_a_memory_without_any_word_of_the_query_does_not_come(
    alice: Principal, remember: Remember
) -> None:
    remember(alice, "Django tip")
    remember(alice, "Bread recipe")
    assert ask(alice, "django") == ["Django tip"]


def test_retrieval_07_the_two_that_fit_come_and_the_third_does_not(
    alice: Principal, remember: Remember, work: Work
) -> None:
    for text in (
        "User writes TypeScript services daily",
        "User likes gardening at weekends",
        "TypeScript and Node are the backend stack",
    ):
        remember(alice, text)
    work()
    found = ask(alice, "typescript backend", mode=Mode.HYBRID, limit=2)
    assert len(found) == 2
    assert "User likes gardening at weekends" not in found


def test_retrieval_14_only_what_a_client_retrieved_counts_as_used(
    alice: Principal, remember: Remember
) -> None:
    memory = remember(alice, "likes tea")
    remember(alice, "likes bread")
    ask(alice, "tea")
    assert not MemoryUse.objects.exists()
    for _ in range(2):
        retrieve(alice, RetrieveRequest("tea", mode=Mode.KEYWORD), purpose="client")
    use = MemoryUse.objects.get()
    assert (use.memory_id, use.access_count) == (memory.pk, 2)
    assert use.last_accessed_at is not None


@pytest.mark.parametrize("limit", [1, 3, 100])
def test_preview_05_never_more_than_the_limit(
    alice: Principal, remember: Remember, limit: int
) -> None:
    for place in range(10):
        remember(alice, f"tea {place}")
    assert len(ask(alice, "tea", limit=limit)) == min(limit, 10)


def test_preview_07_the_tokens_are_the_sum_of_the_hits(
    alice: Principal, remember: Remember
) -> None:
    for place in range(5):
        remember(alice, f"tea {'x' * 40 * place}", key=f"k{place}")
    view = retrieve(alice, RetrieveRequest("tea", max_tokens=30))
    shown = preview_out(view)
    assert 0 < shown["totalTokensUsed"] == sum(hit["tokens"] for hit in shown["memories"]) <= 30


def test_a_hit_that_does_not_fit_is_skipped_and_a_later_one_comes(
    alice: Principal, remember: Remember
) -> None:
    remember(alice, "tea tea tea", key="a")
    remember(alice, f"tea tea {'long ' * 60}", key="b")
    remember(alice, f"tea and some other words {'so on ' * 4}", key="c")
    assert len(ask(alice, "tea", max_tokens=16_000)) == 3
    found = ask(alice, "tea", max_tokens=25)
    assert [text.split()[:2] for text in found] == [["tea", "tea"], ["tea", "and"]]


def test_the_first_hit_is_kept_and_really_cut_to_the_budget(
    alice: Principal, remember: Remember
) -> None:
    remember(alice, "tea " + "leaf " * 200)
    view = retrieve(alice, RetrieveRequest("tea", mode=Mode.KEYWORD, max_tokens=10))
    (hit,) = preview_out(view)["memories"]
    assert (hit["truncated"], hit["tokens"]) == (True, 10)
    assert hit["content"].startswith("tea leaf")
    assert len(hit["content"]) <= 40


def test_a_budget_of_nothing_brings_nothing(alice: Principal, remember: Remember) -> None:
    remember(alice, "likes tea")
    assert ask(alice, "tea", max_tokens=0) == []


@pytest.mark.parametrize("mode", [Mode.KEYWORD, Mode.VECTOR, Mode.HYBRID, Mode.RECENT], ids=str)
def test_the_passages_of_a_long_memory_are_one_hit(
    alice: Principal, remember: Remember, work: Work, mode: Mode
) -> None:
    remember(alice, "The tea of the harbour. " * 150, key="long")
    remember(alice, "tea", key="short")
    work()
    assert Passage.objects.count() > 4
    found = ask(alice, "tea harbour", mode=mode, max_tokens=16_000)
    assert sorted(map(len, found)) == [3, 3600]


def test_a_brand_new_memory_is_found_by_vector_without_waiting_for_the_job(
    alice: Principal, remember: Remember, work: Work
) -> None:
    remember(alice, "likes tea")
    work()
    remember(alice, "plays the violoncello")
    assert wiring.resolve_source().source is not None
    assert ask(alice, "violoncello", mode=Mode.VECTOR)[0] == "plays the violoncello"
    memories.delete(alice, remember(alice, "plays the piano").pk)
    assert "plays the piano" not in ask(alice, "piano", mode=Mode.VECTOR)


def test_the_trace_is_json_that_tells_what_each_stage_did(
    alice: Principal, remember: Remember, work: Work
) -> None:
    for place in range(4):
        remember(alice, f"tea number {place} {'x' * 200}", key=f"k{place}")
    work()
    request = RetrieveRequest("tea number", limit=3, max_tokens=60, trace=True)
    shown = json.loads(json.dumps(preview_out(retrieve(alice, request)), allow_nan=False))
    stages = {stage["name"]: stage for stage in shown["trace"]["stages"]}
    assert list(stages) == ["keyword", "embed", "vector", "fuse", "collapse", "limit", "budget"]
    assert {"tea", "number"} <= set(shown["trace"]["terms"])
    assert stages["limit"]["entries"] == [
        {"passageId": stages["limit"]["entries"][0]["passageId"], "dropped": "limit"}
    ]
    assert {entry.get("dropped") for entry in stages["budget"]["entries"]} == {None, "budget"}
    assert all(stage["tookMs"] >= 0 for stage in stages.values())


def test_without_a_trace_nothing_is_traced(alice: Principal, remember: Remember) -> None:
    remember(alice, "likes tea")
    assert preview_out(retrieve(alice, RetrieveRequest("tea")))["trace"] is None


def test_evaluation_runs_without_retention_and_leaves_no_trace_behind(
    alice: Principal, remember: Remember
) -> None:
    remember(alice, "tea long ago", retained_at=days_ago(300))
    audits = AuditEntry.objects.count()
    view = retrieve(alice, RetrieveRequest("tea", mode=Mode.KEYWORD), purpose="evaluate")
    assert contents(view) == ["tea long ago"]
    assert ask(alice, "tea") == []
    assert AuditEntry.objects.count() == audits
    assert not MemoryUse.objects.exists()


def test_a_read_that_returned_memories_is_audited_by_id_only(
    alice: Principal, remember: Remember
) -> None:
    memory = remember(alice, "private tea")
    ask(alice, "tea")
    ask(alice, "nothing like it")
    (row,) = AuditEntry.objects.filter(action="retrieve.preview")
    assert (row.target_ids, row.count, row.actor) == ([str(memory.pk)], 1, "key:alice")
    assert "private" not in str(row.__dict__)


def test_the_hit_rate_is_answered_retrievals_over_retrievals_with_a_query(
    alice: Principal, bob: Principal, remember: Remember
) -> None:
    assert listing.stats(alice).hit_rate is None
    remember(alice, "likes tea")
    for query in ("tea", "coffee", "tea", "cocoa", ""):
        ask(alice, query)
    assert listing.stats(alice).hit_rate == 0.5
    ask(bob, "tea")
    assert listing.stats(bob).hit_rate == 0.0
    assert RetrievalCount.objects.count() == 2


def test_repeated_queries_are_embedded_once(
    alice: Principal, manager: Principal, remember: Remember, work: Work
) -> None:
    remember(alice, "likes tea")
    work()
    for query in ("tea", "tea", "coffee"):
        ask(alice, query, mode=Mode.VECTOR)
    figures = status.engine_status(manager)
    assert (figures.cache_hits, figures.cache_misses) == (1, 2)


def test_settings_choose_the_fusion(
    alice: Principal, manager: Principal, remember: Remember, work: Work
) -> None:
    remember(alice, "likes tea")
    work()
    for fusion in ("rrf", "scores"):
        studio_settings.update(manager, {"fusion": fusion})
        view = retrieve(alice, RetrieveRequest("tea", mode=Mode.HYBRID))
        assert view.retrieval.fusion == fusion


def test_rrf_order_01_02_equal_fused_scores_have_a_fixed_order(
    alice: Principal, manager: Principal, remember: Remember, work: Work
) -> None:
    studio_settings.update(manager, {"fusion": "rrf"})
    for place in range(8):
        remember(alice, "the same tea", key=f"k{place}", metadata={"title": ""})
    work()
    view = retrieve(alice, RetrieveRequest("the same tea", mode=Mode.HYBRID))
    ids = [hit.passage.id for hit in view.retrieval.hits]
    assert ids == sorted(ids)
    assert all(hit.fused_score and hit.fused_score > 0 for hit in view.retrieval.hits)


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("a" * 1025, "query_too_long"),
        ("字" * 342, "query_too_long"),
        (" ".join(f"w{place}" for place in range(65)), "too_many_terms"),
    ],
)
def test_a_query_over_the_bounds_is_refused_by_name(
    alice: Principal, query: str, code: str
) -> None:
    with pytest.raises(Invalid) as refused:
        ask(alice, query)
    assert (refused.value.code, list(refused.value.fields)) == (code, ["query"])


@pytest.mark.parametrize("limit", [0, -1, 101])
def test_a_limit_out_of_bounds_is_refused(alice: Principal, limit: int) -> None:
    with pytest.raises(Invalid):
        ask(alice, "tea", limit=limit)
