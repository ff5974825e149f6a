"""``/api/webhooks``: who is told what happens, and what they were told."""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpRequest
from ninja import Query, Router

from memory.api.auth import caller
from memory.api.schemas.base import Success
from memory.api.schemas.webhooks import (
    DeliveriesQuery,
    DeliveryList,
    DeliveryOut,
    WebhookChange,
    WebhookCreated,
    WebhookIn,
    WebhookList,
    WebhookOut,
)
from memory.clock import iso
from memory.models import Webhook, WebhookDelivery
from memory.services.webhooks import hooks, log
from memory.services.webhooks.events import EVENTS
from memory.services.webhooks.hooks import WebhookDraft

router = Router(tags=["webhooks"], by_alias=True)
_FIELDS: Final = {"enabled": "is_enabled"}


@router.get("", response=WebhookList)
def list_webhooks(request: HttpRequest) -> dict[str, Any]:
    """The webhooks the caller may see: every one for a manager, its own for a key."""
    return {"data": [_out(hook) for hook in hooks.list_hooks(caller(request))]}


@router.post("", response=WebhookCreated)
def create_webhook(request: HttpRequest, payload: WebhookIn) -> dict[str, Any]:
    """Make a webhook; the secret that signs what it is sent is in this answer only."""
    draft = WebhookDraft(
        name=payload.name,
        url=payload.url,
        events=EVENTS if payload.events is None else tuple(payload.events),
        include_content=payload.include_content,
        is_enabled=payload.enabled,
    )
    hook, secret = hooks.create(
        caller(request), draft, owner=payload.api_key_id, all_owners=payload.all_owners
    )
    return {**_out(hook), "secret": secret}


@router.get("/{webhook_id}", response=WebhookOut)
def read_webhook(request: HttpRequest, webhook_id: str) -> dict[str, Any]:
    """One webhook and how it fares."""
    return _out(hooks.get(caller(request), webhook_id))


@router.put("/{webhook_id}", response=WebhookOut)
def update_webhook(request: HttpRequest, webhook_id: str, payload: WebhookChange) -> dict[str, Any]:
    """Change a webhook. Enabled again, it is sent what waited."""
    changes = {
        _FIELDS.get(name, name): value
        for name, value in payload.model_dump(exclude_unset=True).items()
        if value is not None
    }
    return _out(hooks.update(caller(request), webhook_id, changes))


@router.delete("/{webhook_id}", response=Success)
def delete_webhook(request: HttpRequest, webhook_id: str) -> dict[str, Any]:
    """Remove a webhook with its log."""
    hooks.remove(caller(request), webhook_id)
    return {"success": True}


@router.post("/{webhook_id}/rotate", response=WebhookCreated)
def rotate_webhook(request: HttpRequest, webhook_id: str) -> dict[str, Any]:
    """Give a webhook a new secret; what is sent from now on is signed by it."""
    hook, secret = hooks.rotate(caller(request), webhook_id)
    return {**_out(hook), "secret": secret}


@router.post("/{webhook_id}/test", response=DeliveryOut)
def test_webhook(request: HttpRequest, webhook_id: str) -> dict[str, Any]:
    """Send the event ``webhook.test`` now and tell what came of it."""
    return _delivery_out(log.test(caller(request), webhook_id))


@router.get("/{webhook_id}/deliveries", response=DeliveryList)
def list_deliveries(
    request: HttpRequest, webhook_id: str, filters: Query[DeliveriesQuery]
) -> dict[str, Any]:
    """What a webhook was sent or is still to be sent, newest first."""
    page = log.deliveries(
        caller(request),
        webhook_id,
        state=filters.state,
        limit=filters.limit,
        page=filters.page,
    )
    return {
        "data": [_delivery_out(row) for row in page.rows],
        "total": page.total,
        "page": page.page,
        "limit": page.limit,
        "total_pages": page.total_pages,
    }


@router.post("/deliveries/{delivery_id}/redeliver", response=DeliveryOut)
def redeliver(request: HttpRequest, delivery_id: str) -> dict[str, Any]:
    """Send an event again, under the id that it had."""
    return _delivery_out(log.redeliver(caller(request), delivery_id))


def _out(hook: Webhook) -> dict[str, Any]:
    return {
        "id": str(hook.pk),
        "name": hook.name,
        "url": hook.url,
        "events": hook.events,
        "apiKeyId": str(hook.owner.uid) if hook.owner else None,
        "apiKeyName": hook.owner.name if hook.owner else None,
        "includeContent": hook.include_content,
        "enabled": hook.is_enabled,
        "disabledReason": hook.disabled_reason,
        "consecutiveFailures": hook.failures,
        "failingSince": iso(hook.failing_since),
        "pausedUntil": iso(hook.paused_until),
        "lastError": hook.last_error,
        "lastSentAt": iso(hook.last_sent_at),
        "secretHint": hook.secret_hint,
        "createdAt": iso(hook.created_at),
        "updatedAt": iso(hook.updated_at),
    }


def _delivery_out(row: WebhookDelivery) -> dict[str, Any]:
    return {
        "id": str(row.uid),
        "messageId": row.message_id,
        "webhookId": str(row.webhook_id),
        "event": row.event,
        "state": row.state,
        "items": row.items,
        "count": row.count,
        "attempts": row.attempts,
        "statusCode": row.status_code,
        "errorCode": row.error_code,
        "latencyMs": row.latency_ms,
        "createdAt": iso(row.created_at),
        "attemptedAt": iso(row.attempted_at),
        "nextAttemptAt": iso(row.due_at) if row.state == WebhookDelivery.State.WAITING else None,
    }
