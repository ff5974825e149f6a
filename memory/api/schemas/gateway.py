"""Shapes of the gateway: its settings."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from memory.api.schemas.base import Shape, Strict
from memory.chat_settings import (
    BUDGET_MS,
    IDLE_SECONDS,
    LIMIT,
    TRACE_DAYS,
    ScopeName,
    StyleName,
)


class ChatSettingsIn(Strict):
    """PUT ``/api/settings/gateway``: any of the fields."""

    injection_enabled: bool | None = None
    injection_style: StyleName | None = None
    injection_scope: ScopeName | None = None
    injection_limit: Annotated[int, Field(ge=LIMIT[0], le=LIMIT[1])] | None = None
    injection_budget_ms: Annotated[int, Field(ge=BUDGET_MS[0], le=BUDGET_MS[1])] | None = None
    upstream_idle_seconds: Annotated[int, Field(ge=IDLE_SECONDS[0], le=IDLE_SECONDS[1])] | None = (
        None
    )
    trace_retention_days: Annotated[int, Field(ge=TRACE_DAYS[0], le=TRACE_DAYS[1])] | None = None
    trace_text: bool | None = None


class ChatSettingsOut(Shape):
    """The settings of chats."""

    injection_enabled: bool
    injection_style: StyleName
    injection_scope: ScopeName
    injection_limit: int
    injection_budget_ms: int
    upstream_idle_seconds: int
    trace_retention_days: int
    trace_text: bool
