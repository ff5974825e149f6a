"""Typed decay: memories of some types fade from sight when they are not used (first seed).

Off unless switched on. Decay hides, it never deletes: the ids it names become
``Scope.excluded``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from engine.types import MemoryType

DAY_MS = 86_400_000
DEFAULT_DAYS: Mapping[MemoryType, int | None] = {
    MemoryType.FACTUAL: None,
    MemoryType.EPISODIC: 30,
    MemoryType.PROCEDURAL: None,
    MemoryType.SEMANTIC: None,
}
DEFAULT_IMMUNITY = 3

_PREFIX = "MEMORY_TYPED_DECAY_"


@dataclass(frozen=True, slots=True)
class DecayPolicy:
    """Which types decay, after how many days without use, and what use makes a memory immune.

    A type whose ``ttl_days`` is None never decays. ``access_immunity`` 0 switches that rule off.
    """

    enabled: bool = False
    ttl_days: Mapping[MemoryType, int | None] = field(default_factory=lambda: dict(DEFAULT_DAYS))
    access_immunity: int = DEFAULT_IMMUNITY


@dataclass(frozen=True, slots=True)
class DecayRow:
    """What decay needs to know of one memory. Times are milliseconds since the epoch."""

    id: int
    type: MemoryType
    created_ms: int
    last_accessed_ms: int | None = None
    access_count: int = 0
    is_pinned: bool = False


def policy_from_env(env: Mapping[str, str]) -> DecayPolicy:
    """The policy that environment variables ask for.

    ``MEMORY_TYPED_DECAY_ENABLED`` must be exactly ``true``; ``MEMORY_TYPED_DECAY_<TYPE>_DAYS``
    with 0 makes a type immune; ``MEMORY_TYPED_DECAY_ACCESS_IMMUNITY`` is a number of uses.
    Fractions are cut off; a value that is no number of at least 0 leaves the default.
    """
    days: dict[MemoryType, int | None] = {}
    for memory_type, default in DEFAULT_DAYS.items():
        value = _number(env.get(f"{_PREFIX}{memory_type.value.upper()}_DAYS"))
        days[memory_type] = default if value is None else value or None
    immunity = _number(env.get(f"{_PREFIX}ACCESS_IMMUNITY"))
    return DecayPolicy(
        enabled=env.get(f"{_PREFIX}ENABLED") == "true",
        ttl_days=days,
        access_immunity=DEFAULT_IMMUNITY if immunity is None else immunity,
    )


def is_decayed(row: DecayRow, policy: DecayPolicy, now_ms: int) -> bool:
    """Whether a memory has gone unused for longer than its type lasts (exactly as long is not).

    Looks at the rules only, not at ``policy.enabled``, so that a dry run can show them. The clock
    starts at the last use, or at creation; a pinned memory never decays.
    """
    days = policy.ttl_days.get(row.type)
    if days is None or row.is_pinned:
        return False
    if policy.access_immunity and row.access_count >= policy.access_immunity:
        return False
    since = row.created_ms if row.last_accessed_ms is None else row.last_accessed_ms
    return now_ms - since > days * DAY_MS


def decayed(rows: Iterable[DecayRow], policy: DecayPolicy, now_ms: int) -> frozenset[int]:
    """Ids that the policy hides now; none when it is off."""
    if not policy.enabled:
        return frozenset()
    return frozenset(row.id for row in rows if is_decayed(row, policy, now_ms))


def _number(value: str | None) -> int | None:
    try:
        number = float((value or "").strip())
    except ValueError:
        return None
    return int(number) if math.isfinite(number) and number >= 0 else None
