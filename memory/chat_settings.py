"""The settings of chats that pass through the gateway, beside those of ``stored_settings``.

They lie in the same stored row, and reading them never fails either.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from memory.stored_settings import Field, read

StyleName = Literal["block", "classic"]
ScopeName = Literal["session", "apiKey", "global"]
LIMIT: Final = (1, 100)
BUDGET_MS: Final = (20, 5000)
IDLE_SECONDS: Final = (1, 3600)
TRACE_DAYS: Final = (1, 365)

CHAT_FIELDS: Final = (
    Field("injects", "injectionEnabled", "memoryInjectionEnabled", "flag", True),
    Field(
        "style",
        "injectionStyle",
        "memoryInjectionStyle",
        "choice",
        "block",
        choices=get_args(StyleName),
    ),
    Field(
        "scope",
        "injectionScope",
        "memoryInjectionScope",
        "choice",
        "apiKey",
        choices=get_args(ScopeName),
    ),
    Field("limit", "injectionLimit", "memoryInjectionLimit", "integer", 20, *LIMIT),
    Field("budget_ms", "injectionBudgetMs", "memoryInjectionBudgetMs", "integer", 300, *BUDGET_MS),
    Field(
        "idle_seconds",
        "upstreamIdleSeconds",
        "memoryUpstreamIdleSeconds",
        "integer",
        600,
        *IDLE_SECONDS,
    ),
    Field(
        "trace_days", "traceRetentionDays", "memoryTraceRetentionDays", "integer", 30, *TRACE_DAYS
    ),
    Field("keeps_text", "traceText", "memoryTraceText", "flag", False),
)


@dataclass(frozen=True, slots=True)
class ChatSettings:
    """``injects``: whether keys that say nothing themselves are given memories. ``budget_ms`` is
    how long memory may hold up a chat, ``idle_seconds`` how long an upstream may be silent.
    ``keeps_text`` lets receipts hold what was said and injected.
    """

    injects: bool
    style: str
    scope: str
    limit: int
    budget_ms: int
    idle_seconds: int
    trace_days: int
    keeps_text: bool


def normalise(stored: Mapping[str, Any]) -> ChatSettings:
    """Settings from stored values; never raises."""
    return ChatSettings(**read(CHAT_FIELDS, stored))
