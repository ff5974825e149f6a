"""One rule of what may be seen, on every path alike; lists still show what is hidden, and why."""

from __future__ import annotations

from typing import Any

import pytest

from engine.types import MemoryType, Mode
from memory.models import Memory, MemoryUse, Passage
from memory.principal import Principal
from memory.services import compaction, listing, memories, settings
from memory.tests.asking import ask, days_ago
from memory.tests.conftest import Remember, Work

EVERY_MODE = pytest.mark.parametrize("mode", list(Mode), ids=list(Mode))


@EVERY_MODE
def test_retrieval_08_09_an_expired_memory_is_never_found(
    alice: Principal, remember: Remember, work: Work, mode: Mode
) -> None:
    remember(alice, "tea till yesterday", expires_at=days_ago(1))
    remember(alice, "tea till tomorrow", expires_at=days_ago(-1))
    work()
    assert ask(alice, mode=mode) == ["tea till tomorrow"]


@EVERY_MODE
def test_retrieval_10_11_a_memory_out_of_retention_is_never_found(
    alice: Principal, remember: Remember, work: Work, mode: Mode
) -> None:
    remember(alice, "tea long ago", retained_at=days_ago(40))
    remember(alice, "tea lately", retained_at=days_ago(29))
    work()
    assert ask(alice, mode=mode) == ["tea lately"]


@EVERY_MODE
def test_retention_counts_from_the_last_edit_not_from_creation(
    alice: Principal, remember: Remember, work: Work, mode: Mode
) -> None:
    remember(alice, "tea of old, edited", created_at=days_ago(400))
    work()
    assert ask(alice, mode=mode) == ["tea of old, edited"]


@EVERY_MODE
def test_a_pinned_memory_is_spared_by_retention_but_not_by_its_expiry(
    alice: Principal, remember: Remember, work: Work, mode: Mode
) -> None:
    remember(alice, "tea pinned", retained_at=days_ago(300), is_pinned=True)
    remember(alice, "tea pinned and expired", expires_at=days_ago(1), is_pinned=True)
    work()
    assert ask(alice, mode=mode) == ["tea pinned"]


@EVERY_MODE
def test_retention_is_set_for_each_type(
    alice: Principal, manager: Principal, remember: Remember, work: Work, mode: Mode
) -> None:
    settings.update(manager, {"retentionDays": 10, "retentionDaysByType": {"semantic": 365}})
    for kind in MemoryType:
        remember(alice, f"tea {kind}", type=kind.value, retained_at=days_ago(40))
    work()
    assert ask(alice, mode=mode) == ["tea semantic"]


@EVERY_MODE
def test_an_archived_memory_is_not_found(
    alice: Principal, remember: Remember, work: Work, mode: Mode
) -> None:
    remember(alice, "tea of old", created_at=days_ago(90))
    remember(alice, "tea of today")
    compaction.run_now(alice, compaction.CompactRequest())
    work()
    assert [text for text in ask(alice, mode=mode) if text == "tea of old"] == []
    assert "tea of today" in ask(alice, mode=mode)


@EVERY_MODE
def test_retrieval_13_a_session_has_only_its_own_rows(
    alice: Principal, remember: Remember, work: Work, mode: Mode
) -> None:
    remember(alice, "tea here", session_id="s1")
    remember(alice, "tea there", session_id="s2")
    remember(alice, "tea anywhere")
    work()
    assert ask(alice, mode=mode, session="s1", reach="session") == ["tea here"]
    assert len(ask(alice, mode=mode)) == 3


@EVERY_MODE
def test_types_narrow_what_is_found(
    alice: Principal, remember: Remember, work: Work, mode: Mode
) -> None:
    for kind in MemoryType:
        remember(alice, f"tea {kind}", type=kind.value)
    work()
    found = ask(alice, mode=mode, types=(MemoryType.EPISODIC, MemoryType.SEMANTIC))
    assert sorted(found) == ["tea episodic", "tea semantic"]


@EVERY_MODE
def test_global_reach_adds_what_a_manager_shared(
    alice: Principal,
    bob: Principal,
    manager: Principal,
    remember: Remember,
    work: Work,
    mode: Mode,
) -> None:
    remember(alice, "tea of alice")
    remember(bob, "tea of bob")
    remember(manager, "tea of all", is_shared=True)
    remember(manager, "tea of all, expired", is_shared=True, expires_at=days_ago(1))
    work()
    assert ask(alice, mode=mode) == ["tea of alice"]
    assert sorted(ask(alice, mode=mode, reach="global")) == ["tea of alice", "tea of all"]


@EVERY_MODE
def test_what_was_shared_and_is_not_any_more_is_gone_from_the_global_reach(
    alice: Principal, manager: Principal, remember: Remember, work: Work, mode: Mode
) -> None:
    memory = remember(manager, "tea of all", is_shared=True)
    work()
    assert ask(alice, mode=mode, reach="global") == ["tea of all"]
    memories.update(manager, memory.pk, {"is_shared": False})
    assert ask(alice, mode=mode, reach="global") == []


@EVERY_MODE
@pytest.mark.parametrize(("enabled", "found"), [("true", 2), ("false", 3), ("TRUE", 3)])
def test_typed_decay_hides_unused_episodes_only_when_switched_on(
    alice: Principal,
    remember: Remember,
    work: Work,
    settings: Any,
    mode: Mode,
    enabled: str,
    found: int,
) -> None:
    settings.MEMORY_TYPED_DECAY = {"MEMORY_TYPED_DECAY_ENABLED": enabled}
    remember(alice, "tea faded", type="episodic", created_at=days_ago(31))
    used = remember(alice, "tea used", type="episodic", created_at=days_ago(31))
    remember(alice, "tea known", type="factual", created_at=days_ago(31))
    MemoryUse.objects.create(memory=used, access_count=3, last_accessed_at=days_ago(31))
    work()
    assert len(ask(alice, mode=mode)) == found


def test_typed_decay_hides_what_others_share_as_well(
    alice: Principal, manager: Principal, remember: Remember, settings: Any
) -> None:
    settings.MEMORY_TYPED_DECAY = {"MEMORY_TYPED_DECAY_ENABLED": "true"}
    remember(manager, "tea faded", type="episodic", created_at=days_ago(31), is_shared=True)
    remember(manager, "tea known", created_at=days_ago(31), is_shared=True)
    assert ask(alice, reach="global") == ["tea known"]


def test_decay_deletes_nothing_and_pinning_ends_it(
    alice: Principal, remember: Remember, settings: Any
) -> None:
    settings.MEMORY_TYPED_DECAY = {"MEMORY_TYPED_DECAY_ENABLED": "true"}
    memory = remember(alice, "tea faded", type="episodic", created_at=days_ago(31))
    assert ask(alice) == []
    assert Memory.objects.filter(trashed_at__isnull=True, archived_at__isnull=True).count() == 1
    memories.update(alice, memory.pk, {"is_pinned": True})
    assert ask(alice) == ["tea faded"]


def test_lists_still_show_hidden_rows_with_the_reason(alice: Principal, remember: Remember) -> None:
    remember(alice, "expired", expires_at=days_ago(1))
    remember(alice, "forgotten", retained_at=days_ago(31))
    remember(alice, "pinned", retained_at=days_ago(31), is_pinned=True)
    remember(alice, "plain")
    page = listing.list_page(alice, listing.MemoryFilter())
    assert {row.memory.content: row.hidden_reason for row in page.rows} == {
        "expired": "expired",
        "forgotten": "retention",
        "pinned": "",
        "plain": "",
    }
    hidden = listing.list_page(alice, listing.MemoryFilter(state="hidden"))
    assert {row.memory.content for row in hidden.rows} == {"expired", "forgotten"}
    assert listing.stats(alice).hidden == 2


def test_hidden_in_lists_is_exactly_what_retrieval_leaves_out(
    alice: Principal, manager: Principal, remember: Remember
) -> None:
    settings.update(manager, {"retentionDaysByType": {"episodic": 5, "factual": 90}})
    for place in range(60):
        remember(
            alice,
            f"tea {place}",
            type=list(MemoryType)[place % 4].value,
            retained_at=days_ago(place * 2),
            expires_at=days_ago(20 - place) if place % 3 == 0 else None,
            is_pinned=place % 7 == 0,
        )
    found = ask(alice, mode=Mode.RECENT, limit=100, max_tokens=16_000)
    hidden = listing.list_page(alice, listing.MemoryFilter(state="hidden", limit=200))
    assert Passage.objects.count() == 60
    assert sorted([*found, *(row.memory.content for row in hidden.rows)]) == sorted(
        f"tea {place}" for place in range(60)
    )
