from __future__ import annotations

import pytest

from engine.decay import DAY_MS, DecayPolicy, DecayRow, decayed, is_decayed, policy_from_env
from engine.types import MemoryType

ON = DecayPolicy(enabled=True)
MONTH_MS = 30 * DAY_MS


def episode(**changes: int) -> DecayRow:
    return DecayRow(**{"id": 1, "type": MemoryType.EPISODIC, "created_ms": 0, **changes})  # type: ignore[arg-type]


def test_typed_decay_01_02_thirty_days_exactly_survive_and_a_millisecond_more_does_not() -> None:
    assert not is_decayed(episode(), ON, MONTH_MS)
    assert is_decayed(episode(), ON, MONTH_MS + 1)


@pytest.mark.parametrize(
    "memory_type", [MemoryType.FACTUAL, MemoryType.PROCEDURAL, MemoryType.SEMANTIC]
)
def test_typed_decay_05_other_types_last(memory_type: MemoryType) -> None:
    assert not is_decayed(DecayRow(1, memory_type, created_ms=0), ON, 100 * MONTH_MS)


def test_typed_decay_08_the_clock_starts_again_at_the_last_use() -> None:
    assert not is_decayed(episode(last_accessed_ms=MONTH_MS), ON, MONTH_MS + 5)


def test_three_uses_make_immune_unless_that_rule_is_off() -> None:
    assert not is_decayed(episode(access_count=3), ON, 2 * MONTH_MS)
    assert is_decayed(episode(access_count=2), ON, 2 * MONTH_MS)
    without = DecayPolicy(enabled=True, access_immunity=0)
    assert is_decayed(episode(access_count=99), without, 2 * MONTH_MS)


def test_a_pinned_memory_never_decays() -> None:
    assert not is_decayed(episode(is_pinned=True), ON, 2 * MONTH_MS)


def test_a_policy_that_is_off_hides_nothing_but_can_be_tried() -> None:
    rows = [episode(), episode(id=2, created_ms=MONTH_MS)]
    assert decayed(rows, DecayPolicy(), MONTH_MS + 1) == frozenset()
    assert decayed(rows, ON, MONTH_MS + 1) == {1}
    assert is_decayed(rows[0], DecayPolicy(), MONTH_MS + 1)


def test_typed_decay_09_the_environment_says_off_by_default() -> None:
    assert policy_from_env({}) == DecayPolicy()


@pytest.mark.parametrize("value", ["1", "TRUE", "yes", ""])
def test_decay_is_on_only_for_exactly_true(value: str) -> None:
    assert not policy_from_env({"MEMORY_TYPED_DECAY_ENABLED": value}).enabled
    assert policy_from_env({"MEMORY_TYPED_DECAY_ENABLED": "true"}).enabled


@pytest.mark.parametrize(
    ("value", "days"), [("0", None), ("7", 7), ("7.9", 7), ("-1", 30), ("x", 30), ("inf", 30)]
)
def test_typed_decay_11_days_of_a_type_come_from_the_environment(
    value: str, days: int | None
) -> None:
    policy = policy_from_env({"MEMORY_TYPED_DECAY_EPISODIC_DAYS": value})
    assert policy.ttl_days[MemoryType.EPISODIC] == days


def test_every_type_and_the_immunity_can_be_set() -> None:
    policy = policy_from_env(
        {"MEMORY_TYPED_DECAY_FACTUAL_DAYS": "365", "MEMORY_TYPED_DECAY_ACCESS_IMMUNITY": "0"}
    )
    assert policy.ttl_days[MemoryType.FACTUAL] == 365
    assert policy.access_immunity == 0
