"""Compaction by age: the preview is exactly what is stored, per owner, originals archived."""

from __future__ import annotations

import re

import pytest

from engine.types import Mode
from memory.errors import Forbidden, Invalid
from memory.models import ApiKey, AuditEntry, Compaction, Job, Memory
from memory.principal import SYSTEM, Principal
from memory.services import compaction, jobrows
from memory.services import settings as studio_settings
from memory.services.compaction import CompactRequest
from memory.services.housekeeping import tick
from memory.tests.asking import ask, days_ago
from memory.tests.conftest import Remember, Work

STUDIO = Principal("studio", "studio", frozenset({"read", "write", "chat", "manage"}))


def _old(principal: Principal, remember: Remember, *texts: str, **fields: object) -> list[Memory]:
    return [
        remember(principal, text, created_at=days_ago(92 - place), **fields)
        for place, text in enumerate(texts)
    ]


def _live(owner: int | None) -> list[Memory]:
    return list(
        Memory.objects.filter(
            api_key=owner, archived_at__isnull=True, trashed_at__isnull=True
        ).order_by("created_at")
    )


def test_summarise_older_01_a_preview_changes_nothing(alice: Principal, remember: Remember) -> None:
    _old(alice, remember, "one", "two", "three", "four", "five")
    before = sorted(Memory.objects.values_list("pk", "content", "updated_at", "archived_at"))
    jobs_before = Job.objects.count()
    (plan,) = compaction.preview(alice, CompactRequest())
    assert [item.memory.content for item in plan.candidates] == [
        "one",
        "two",
        "three",
        "four",
        "five",
    ]
    assert plan.original_count == 5
    after = sorted(Memory.objects.values_list("pk", "content", "updated_at", "archived_at"))
    assert after == before
    assert (Compaction.objects.count(), Job.objects.count()) == (0, jobs_before)


def test_summarise_older_02_originals_are_archived_and_linked_to_the_summary(
    alice: Principal, remember: Remember
) -> None:
    originals = _old(alice, remember, "one", "two", "three", "four", "five")
    (plan,) = compaction.preview(alice, CompactRequest())
    outcome = compaction.run_now(alice, CompactRequest())
    (made,) = outcome.compactions
    (summary,) = _live(alice.owner)
    assert made.summary_ids == [str(summary.pk)]
    assert (summary.type, summary.content) == ("semantic", plan.texts[0])
    assert re.fullmatch(r"summary_\d{4}-\d\d-\d\dT[\d:.]+Z", summary.key)
    assert summary.metadata["summarizedCount"] == 5
    assert summary.metadata["olderThanDays"] == 30
    linked = Memory.objects.filter(archived_by=made)
    assert {row.pk for row in linked} == {row.pk for row in originals}
    assert all(row.archived_at and row.content for row in linked)


def test_the_preview_text_is_exactly_what_is_stored_for_every_owner(
    alice: Principal, bob: Principal, remember: Remember
) -> None:
    long = "A sentence about the harbour in spring. " * 40
    _old(alice, remember, *(f"{place} {long}" for place in range(60)))
    _old(bob, remember, "我喜欢喝茶。", "我住在上海。")
    plans = compaction.preview(STUDIO, CompactRequest(all_owners=True))
    assert [plan.owner.name for plan in plans] == ["alice", "bob"]
    assert len(plans[0].texts) > 2
    outcome = compaction.run_now(STUDIO, CompactRequest(all_owners=True))
    for plan, made in zip(plans, outcome.compactions, strict=True):
        stored = [Memory.objects.get(pk=memory_id).content for memory_id in made.summary_ids]
        assert stored == plan.texts
        assert outcome.texts[str(made.pk)] == plan.texts
        assert made.api_key_id == plan.owner.pk


def test_summarise_older_04_only_what_is_strictly_older(
    alice: Principal, remember: Remember
) -> None:
    for age in (31, 40, 50, 1, 29):
        remember(alice, f"aged {age}", created_at=days_ago(age))
    (plan,) = compaction.preview(alice, CompactRequest(older_than_days=30))
    assert [item.memory.content for item in plan.candidates] == ["aged 50", "aged 40", "aged 31"]


def test_summarise_older_05_the_tokens_are_those_of_the_candidates(
    alice: Principal, remember: Remember
) -> None:
    _old(alice, remember, "aaaa", "bbbbbbbb")
    assert compaction.preview(alice, CompactRequest())[0].total_tokens == 3


def test_summarise_older_06_each_owner_has_a_summary_of_its_own(
    alice: Principal, bob: Principal, remember: Remember
) -> None:
    _old(alice, remember, "alice was here")
    _old(bob, remember, "bob was here")
    compaction.run_now(STUDIO, CompactRequest(all_owners=True))
    for owner, other in ((alice, "bob"), (bob, "alice")):
        (summary,) = _live(owner.owner)
        assert summary.key.startswith("summary_")
        assert other not in summary.content


@pytest.mark.parametrize(
    ("texts", "begins"),
    [
        (["I live in Oslo.", "I like tea."], "Summary of 2 memories older than 30 days:"),
        (["我喜欢喝茶。", "我住在上海。"], "2 条早于 30 天的记忆摘要："),
        (["東京に住んでいます。", "お茶が好きです。"], "30日より前の記憶2件の要約："),
    ],
    ids=["English", "Chinese", "Japanese"],
)
def test_summarise_older_07_the_header_is_in_the_language_of_the_memories(
    alice: Principal, remember: Remember, texts: list[str], begins: str
) -> None:
    _old(alice, remember, *texts)
    (text,) = compaction.preview(alice, CompactRequest())[0].texts
    assert text.splitlines()[0] == begins


def test_each_line_names_type_key_and_first_sentences(alice: Principal, remember: Remember) -> None:
    _old(alice, remember, "One. Two. Three. Four.", key="count", type="episodic")
    (text,) = compaction.preview(alice, CompactRequest())[0].texts
    assert text.splitlines()[1] == "[episodic] count: One. Two. Three."


def test_pinned_rows_and_summaries_are_spared(alice: Principal, remember: Remember) -> None:
    _old(alice, remember, "pinned", is_pinned=True)
    _old(alice, remember, "plain")
    compaction.run_now(alice, CompactRequest())
    Memory.objects.filter(key__startswith="summary_").update(created_at=days_ago(90))
    assert compaction.preview(alice, CompactRequest()) == []
    assert {row.content == "pinned" for row in _live(alice.owner)} == {True, False}


def test_a_session_limits_what_is_compacted(alice: Principal, remember: Remember) -> None:
    _old(alice, remember, "here", session_id="s1")
    _old(alice, remember, "there", session_id="s2")
    compaction.run_now(alice, CompactRequest(session="s1"))
    assert Memory.objects.get(content="there").archived_at is None
    assert Memory.objects.get(content="here").archived_at is not None


def test_archived_rows_are_not_found_but_their_summary_is(
    alice: Principal, remember: Remember, work: Work
) -> None:
    _old(alice, remember, "the zebra of old")
    work()
    compaction.run_now(alice, CompactRequest())
    work()
    for mode in Mode:
        (found,) = ask(alice, "zebra", mode=mode)
        assert found.startswith("Summary of 1 memory")


def test_rest_21_a_studio_user_names_an_owner_or_asks_for_all(
    alice: Principal, remember: Remember
) -> None:
    _old(alice, remember, "old")
    with pytest.raises(Invalid) as refused:
        compaction.run_now(STUDIO, CompactRequest())
    assert list(refused.value.fields) == ["apiKeyId"]
    assert not Job.objects.filter(kind="compact").exists()
    assert compaction.run_now(STUDIO, CompactRequest(owner="alice")).compactions


def test_an_ordinary_key_compacts_only_its_own(
    alice: Principal, bob: Principal, remember: Remember
) -> None:
    _old(alice, remember, "alice")
    _old(bob, remember, "bob")
    compaction.run_now(alice, CompactRequest(owner="bob", all_owners=True))
    assert Memory.objects.get(content="bob").archived_at is None
    assert Memory.objects.get(content="alice").archived_at is not None


def test_compacting_needs_the_scope(alice: Principal) -> None:
    reader = Principal("key", "alice", frozenset({"read"}), owner=alice.owner)
    assert compaction.preview(reader, CompactRequest()) == []
    with pytest.raises(Forbidden):
        compaction.run_now(reader, CompactRequest())


def test_without_candidates_nothing_is_made(alice: Principal, remember: Remember) -> None:
    remember(alice, "new")
    assert compaction.preview(alice, CompactRequest()) == []
    assert compaction.run_now(alice, CompactRequest()).compactions == []


def test_a_compaction_that_was_cut_off_goes_on_with_the_owners_that_are_left(
    alice: Principal, bob: Principal, manager: Principal, remember: Remember, work: Work
) -> None:
    for owner in (alice, bob, manager):
        _old(owner, remember, f"{owner.name} was here")
    job = compaction.start(STUDIO, CompactRequest(all_owners=True), dispatch=False)
    owners = job.params["owners"]
    assert owners == list(ApiKey.objects.order_by("pk").values_list("pk", flat=True))
    half = owners.index(alice.owner) + 1
    job.params = {**job.params, "left": owners[half:], "compactions": []}
    job.save()
    work()
    done = {made.api_key.name for made in Compaction.objects.all()}
    assert done == {"bob", "manager"}
    finished = jobrows.get(STUDIO, job.pk)
    assert (finished.state, len(finished.result["compactions"])) == (Job.State.SUCCEEDED, 2)
    assert (finished.done, finished.total) == (len(owners), len(owners))


def test_the_audit_names_ids_and_no_text(alice: Principal, remember: Remember) -> None:
    _old(alice, remember, "a secret sentence")
    compaction.run_now(alice, CompactRequest())
    row = AuditEntry.objects.get(action="memory.compact.age")
    assert row.count == 1
    assert "secret" not in str(row.__dict__)


def test_summaries_are_made_by_themselves_only_when_the_settings_say_so(
    alice: Principal, remember: Remember, work: Work
) -> None:
    _old(alice, remember, "long ago")
    tick()
    assert not Job.objects.filter(kind="compact").exists()
    studio_settings.update(SYSTEM, {"autoSummarize": True})
    for _ in range(2):
        tick()
        work()
    assert Job.objects.filter(kind="compact").count() == 1
    assert Memory.objects.get(content="long ago").archived_at is not None
