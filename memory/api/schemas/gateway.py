"""Shapes of the gateway: its settings, previews, receipts, and what memory costs."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from memory.api.schemas.base import Shape, Strict, Text, Whole
from memory.api.schemas.memories import Moment
from memory.chat_settings import (
    BUDGET_MS,
    IDLE_SECONDS,
    LIMIT,
    TRACE_DAYS,
    ScopeName,
    StyleName,
)
from memory.services.gateway.meter import MAX_DAILY

Idle = Annotated[Whole, Field(ge=IDLE_SECONDS[0], le=IDLE_SECONDS[1])]
ProtocolName = Literal["chat", "responses", "messages"]
InjectionName = Literal["inherit", "on", "off"]
StateName = Literal[
    "injected",
    "none",
    "off",
    "opted_out",
    "no_text",
    "no_session",
    "no_place",
    "capped",
    "late",
    "failed",
]


class ChatSettingsIn(Strict):
    """PUT ``/api/settings/gateway``: any of the fields."""

    injection_enabled: bool | None = None
    injection_style: StyleName | None = None
    injection_scope: ScopeName | None = None
    injection_limit: Annotated[Whole, Field(ge=LIMIT[0], le=LIMIT[1])] | None = None
    injection_budget_ms: Annotated[Whole, Field(ge=BUDGET_MS[0], le=BUDGET_MS[1])] | None = None
    upstream_idle_seconds: (
        Annotated[Whole, Field(ge=IDLE_SECONDS[0], le=IDLE_SECONDS[1])] | None
    ) = None
    trace_retention_days: Annotated[Whole, Field(ge=TRACE_DAYS[0], le=TRACE_DAYS[1])] | None = None
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


class PreviewChatIn(Strict):
    """POST ``/api/gateway/preview``: a chat as a client would send it.

    ``headers`` may name a session or opt out; ``assumeOn`` previews as if memory was switched on.
    """

    body: dict[str, Any]
    protocol: ProtocolName = "chat"
    api_key_id: Text | None = None
    headers: dict[Text, Text] = Field(default_factory=dict)
    assume_on: bool = False


class RetrievedOut(Shape):
    """One memory that was found for a chat."""

    id: str
    tier: str
    score: float


class PreviewChatOut(Shape):
    """What would be sent: ``request`` is its body, ``memory`` what memory did for it and
    ``place`` where it is. Nothing was sent or counted."""

    memory: str
    request: dict[str, Any]
    provider: str | None
    api_key_id: str
    query: str
    text: str
    place: str
    tokens: int
    retrieved: list[RetrievedOut]
    injected: list[str]


class KeyGatewayIn(Strict):
    """PUT ``/api/gateway/keys/{id}``: ``dailyTokens`` null is no cap."""

    injection: InjectionName
    daily_tokens: Annotated[Whole, Field(ge=0, le=MAX_DAILY)] | None = None


class UsageOut(Shape):
    """What memory cost one key in its chats: tokens today and over 30 days."""

    api_key_id: str
    api_key_name: str
    injection: InjectionName
    daily_tokens: int | None
    tokens_today: int
    tokens_month: int
    chats_month: int
    injected_month: int
    failures_month: int


class UsageList(Shape):
    """One entry for each key that the caller may see."""

    data: list[UsageOut]


class TraceQuery(Schema):
    """Query of GET ``/api/traces``: ``since`` is included, ``until`` is not."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)

    api_key_id: Text = ""
    memory: StateName | None = None
    session_id: Annotated[Text, Field(max_length=200)] = ""
    since: Moment = None
    until: Moment = None
    limit: Annotated[int, Field(ge=1, le=200)] = 50
    page: Annotated[int, Field(ge=1, le=10_000_000)] = 1


class TraceOut(Shape):
    """The receipt of one chat: ids, counts and durations in milliseconds.

    ``durations``: ``retrieve`` and ``inject`` are steps of their own; ``ready`` (sent upstream),
    ``upstream`` (head of the answer) and ``total`` count from the beginning.
    """

    id: str
    at: str
    api_key_id: str
    api_key_name: str
    session_id: str
    protocol: str
    model: str
    provider: str
    stream: bool
    status: int
    outcome: str
    memory: str
    place: str
    tokens: int
    retrieved: list[RetrievedOut]
    injected: list[str]
    learnt: list[str]
    degraded: list[list[str]]
    durations: dict[str, float]


class TraceDetailOut(TraceOut):
    """The same with ``text`` where the settings keep texts, else null."""

    text: dict[str, str] | None


class TraceList(Shape):
    """One page, newest first."""

    data: list[TraceOut]
    total: int
    page: int
    limit: int
    total_pages: int
