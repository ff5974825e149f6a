"""Shapes of ``/api/memory``."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import AfterValidator, ConfigDict, Field, WithJsonSchema
from pydantic.alias_generators import to_camel

from memory.api.schemas.base import (
    WHOLE,
    Metadata,
    NonEmpty,
    Shape,
    Strict,
    Text,
    TypeName,
    Whole,
)


def _aware(value: datetime | None) -> datetime | None:
    """A time without a zone is UTC; the answer is always the moment in UTC."""
    if value is None or value.tzinfo is None:
        return value and value.replace(tzinfo=UTC)
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise ValueError("the time is outside the calendar") from None


Moment = Annotated[
    datetime | None,
    Field(strict=False),
    AfterValidator(_aware),
    WithJsonSchema(
        {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "number"}, {"type": "null"}]}
    ),
]
"""ISO 8601, or a Unix time: in seconds, in milliseconds when it is that large."""


class MemoryOut(Shape):
    """A memory. Times are ISO 8601, UTC."""

    id: str
    api_key_id: str
    api_key_name: str
    session_id: str
    type: str
    key: str
    content: str
    metadata: dict[str, Any]
    created_at: str
    updated_at: str
    expires_at: str | None
    occurred_at: str | None
    archived_at: str | None
    access_count: int
    last_accessed_at: str | None
    pinned: bool
    shared: bool
    revision: int
    tokens: int


class MemoryCreate(Shape):
    """POST ``/api/memory``. Unknown fields are dropped, as the first seed does."""

    content: NonEmpty
    key: NonEmpty
    type: TypeName = "factual"
    session_id: Text = ""
    api_key_id: Text = ""
    metadata: Metadata = Field(default_factory=dict)
    expires_at: Moment = None
    occurred_at: Moment = None
    pinned: bool = False
    shared: bool = False


class MemoryCreated(MemoryOut):
    """The stored memory; ``created`` is false when a live one with the key was updated."""

    success: bool = True
    created: bool


class MemoryUpdate(Strict):
    """PUT ``/api/memory/{id}``; an empty one is accepted. ``revision`` guards against overwriting
    someone else's change."""

    type: TypeName | None = None
    key: NonEmpty | None = None
    content: NonEmpty | None = None
    metadata: Metadata | None = None
    session_id: Text | None = None
    expires_at: Moment = None
    occurred_at: Moment = None
    pinned: bool | None = None
    shared: bool | None = None
    revision: Whole | None = None


class RestoreIn(Strict):
    """POST ``/api/memory/{id}/restore``: ``revision`` is one of its history."""

    revision: Annotated[int, Field(ge=1, le=2**31 - 1), WHOLE] | None = None


class MemoryQuery(Schema):
    """Query of GET ``/api/memory``; texts of the query string become numbers."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)

    api_key_id: Text = ""
    type: TypeName | None = None
    session_id: Text = ""
    q: Text = ""
    state: Literal["live", "hidden", "archived", "trash", "all"] = "live"
    limit: Annotated[int, Field(ge=1, le=200)] = 50
    page: Annotated[int, Field(ge=1, le=10_000_000)] = 1
    offset: Annotated[int | None, Field(ge=0, le=1_000_000_000)] = None
    filters: Annotated[str, Field(description="JSON of a filter over metadata")] = ""


class MemoryBody(Shape):
    """One memory."""

    memory: MemoryOut


class CacheStats(Shape):
    """Reads by id that were answered from the cache of this process, and those that were not: a
    key's own, everybody's for managers."""

    hits: int
    misses: int


class StatsOut(Shape):
    """Figures over the live rows of an owner."""

    total: int
    by_type: dict[str, int]
    tokens_used: int
    hit_rate: float
    cache_stats: CacheStats
    pending_index: int
    hidden: int


class MemoryList(Shape):
    """One page of memories."""

    data: list[MemoryOut]
    total: int
    page: int
    limit: int
    total_pages: int
    stats: StatsOut


class RevisionOut(Shape):
    """What a memory was before one change."""

    revision: int
    key: str
    type: str
    content: str
    metadata: dict[str, Any]
    session_id: str
    expires_at: str | None
    replaced_at: str | None
    replaced_by: str
    action: str


class HistoryOut(Shape):
    """Earlier states, newest first."""

    data: list[RevisionOut]


class HealthOut(Shape):
    """Result of a real round trip."""

    working: bool
    latency_ms: float
    error: str | None = None
