"""Which webhooks want which events: read once a second at most, so that a write that nobody wants
to hear of costs no query."""

from __future__ import annotations

import threading
import time
import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import Q

from memory.clock import now
from memory.models import Webhook

FRESH_S: Final = 1.0
"""How long a process may go by webhooks that another one has changed."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """One webhook that is enabled. Without an owner it wants the events of all."""

    webhook: uuid.UUID
    owner: int | None
    events: frozenset[str]
    paused_until: datetime | None

    def wants(self, event: str, owner: int | None) -> bool:
        """Whether it is to hear of an event of an owner."""
        return event in self.events and self.owner in (None, owner)


_lock = threading.Lock()
_known: tuple[float, tuple[Subscription, ...]] | None = None


def current() -> tuple[Subscription, ...]:
    """The webhooks that are enabled; not those of keys that were revoked or have expired."""
    global _known
    known = _known
    if known is None or time.monotonic() - known[0] > FRESH_S:
        with _lock:
            _known = known = (time.monotonic(), _read())
    return known[1]


def reset() -> None:
    """Forget what was read, when a webhook changes."""
    global _known
    with _lock:
        _known = None


def serving() -> Q:
    """Which rows are served: enabled, and of a key that is still good."""
    good = Q(owner__expires_at__isnull=True) | Q(owner__expires_at__gt=now())
    return Q(is_enabled=True) & (Q(owner__isnull=True) | (Q(owner__revoked_at__isnull=True) & good))


def _read() -> tuple[Subscription, ...]:
    rows = Webhook.objects.filter(serving()).only("owner_id", "events", "paused_until")
    return tuple(
        Subscription(row.pk, row.owner_id, frozenset(row.events), row.paused_until)
        for row in rows.order_by("pk")
    )
