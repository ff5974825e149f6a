"""What is sent: JSON with the event, its time, its owner, and ids; texts only where asked for."""

from __future__ import annotations

import json
from typing import Any, Final

from memory.clock import iso
from memory.models import Memory, Webhook, WebhookDelivery
from memory.services.exchange import memory_json
from memory.services.webhooks.events import DELETED, JOB_FINISHED, TEST

MOST_CONTENT: Final = 256 * 1024
"""Bytes of whole memories in one body; those beyond come as ids."""


def body(hook: Webhook, row: WebhookDelivery) -> bytes:
    """The body of a delivery as it is now: a text is that of the moment of sending."""
    owner = row.owner
    data: dict[str, Any] = {
        "apiKeyId": str(owner.uid) if owner else None,
        "apiKeyName": owner.name if owner else None,
    }
    if row.event == JOB_FINISHED:
        data["job"] = row.items[0]
    elif row.event == TEST:
        data["webhookId"] = str(hook.pk)
    else:
        data["memories"] = _with_content(row) if hook.include_content else row.items
        data["count"] = row.count
    document = {"type": row.event, "timestamp": iso(row.created_at), "data": data}
    return json.dumps(document, ensure_ascii=False).encode()


def _with_content(row: WebhookDelivery) -> list[dict[str, Any]]:
    """Items with the whole memory beside each id, where it is still there and there is room."""
    if row.event == DELETED:
        return list(row.items)
    kept = Memory.objects.filter(pk__in=[item["id"] for item in row.items], api_key=row.owner)
    found = {
        str(memory.pk): memory
        for memory in kept.filter(trashed_at__isnull=True).select_related("api_key", "use")
    }
    left = MOST_CONTENT
    items: list[dict[str, Any]] = []
    for item in row.items:
        memory = found.get(item["id"])
        whole = memory_json(memory) if memory is not None else None
        left -= len(json.dumps(whole, ensure_ascii=False).encode()) if whole else 0
        items.append({**item, "memory": whole} if whole and left >= 0 else dict(item))
    return items
