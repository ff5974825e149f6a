"""Shapes of ``/api/webhooks``."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import Field

from memory.api.schemas.base import NonEmpty, Shape, Strict, Text

EventName = Literal[
    "memory.created",
    "memory.updated",
    "memory.deleted",
    "memory.restored",
    "memory.compacted",
    "job.finished",
]
StateName = Literal["", "waiting", "sent", "failed"]


class WebhookIn(Strict):
    """POST ``/api/webhooks``. Without ``events`` it hears of all; ``allOwners`` is for managers."""

    name: NonEmpty
    url: NonEmpty
    events: list[EventName] | None = None
    api_key_id: Text = ""
    all_owners: bool = False
    include_content: bool = False
    enabled: bool = True


class WebhookChange(Strict):
    """PUT ``/api/webhooks/{id}``: the fields that are to change."""

    name: NonEmpty | None = None
    url: NonEmpty | None = None
    events: list[EventName] | None = None
    include_content: bool | None = None
    enabled: bool | None = None


class WebhookOut(Shape):
    """A webhook without its secret. ``apiKeyId`` null: it hears of every owner."""

    id: str
    name: str
    url: str
    events: list[str]
    api_key_id: str | None
    api_key_name: str | None
    include_content: bool
    enabled: bool
    disabled_reason: str
    consecutive_failures: int
    failing_since: str | None
    paused_until: str | None
    last_error: str
    last_sent_at: str | None
    secret_hint: str
    created_at: str
    updated_at: str


class WebhookCreated(WebhookOut):
    """A new webhook, or one with a new secret. ``secret`` is never shown again."""

    secret: str


class WebhookList(Shape):
    """Every webhook that the caller may see."""

    data: list[WebhookOut]


class DeliveriesQuery(Schema):
    """Query of GET ``/api/webhooks/{id}/deliveries``."""

    state: StateName = ""
    limit: Annotated[int, Field(ge=1, le=200)] = 50
    page: Annotated[int, Field(ge=1, le=10_000_000)] = 1


class DeliveryOut(Shape):
    """One event for a webhook. ``messageId`` is its id at the receiver; ``items`` are ids."""

    id: str
    message_id: str
    webhook_id: str
    event: str
    state: str
    items: list[dict[str, Any]]
    count: int
    attempts: int
    status_code: int | None
    error_code: str
    latency_ms: float
    created_at: str
    attempted_at: str | None
    next_attempt_at: str | None


class DeliveryList(Shape):
    """One page, newest first."""

    data: list[DeliveryOut]
    total: int
    page: int
    limit: int
    total_pages: int
