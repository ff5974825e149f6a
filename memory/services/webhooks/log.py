"""What webhooks were sent: the log, a test, and sending something again."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Final

from django.db import transaction
from django.utils.translation import gettext as _

from memory.clock import now
from memory.errors import Conflict, Invalid, NotFound
from memory.models import Webhook, WebhookDelivery
from memory.principal import Principal
from memory.services import access, audit
from memory.services.webhooks import delivering, hooks
from memory.services.webhooks.events import TEST, send_soon

MAX_LIMIT: Final = 200
STATES: Final = tuple(state.value for state in WebhookDelivery.State)


@dataclass(frozen=True, slots=True)
class DeliveryPage:
    """One page of the log of a webhook, newest first."""

    rows: list[WebhookDelivery]
    total: int
    page: int
    limit: int

    @property
    def total_pages(self) -> int:
        """How many pages there are."""
        return -(-self.total // self.limit)


def deliveries(
    principal: Principal,
    reference: str | uuid.UUID,
    *,
    state: str = "",
    limit: int = 50,
    page: int = 1,
) -> DeliveryPage:
    """What a webhook was sent or is still to be sent; a page beyond the end is empty."""
    hook = hooks.get(principal, reference)
    if not 1 <= limit <= MAX_LIMIT or page < 1 or (state and state not in STATES):
        raise Invalid(_("The list cannot be shown like that."))
    rows = WebhookDelivery.objects.select_related("owner").filter(webhook=hook)
    if state:
        rows = rows.filter(state=state)
    first = (page - 1) * limit
    found = list(rows.order_by("-pk")[first : first + limit])
    return DeliveryPage(found, rows.count(), page, limit)


def test(principal: Principal, reference: str | uuid.UUID) -> WebhookDelivery:
    """Send the event ``webhook.test`` now, once, also where the webhook is off."""
    hook = hooks.get(principal, reference)
    access.require(principal, "write")
    # For good before it is sent: whatever comes of it, the log has it.
    row = WebhookDelivery.objects.create(
        webhook=hook, event=TEST, owner=hook.owner, created_at=now(), count=0
    )
    audit.record(principal, "webhook.test", owner=hook.owner, ids=[hook.pk])
    delivering.attempt(hook, row, is_last=True)
    return row


def redeliver(principal: Principal, reference: str | uuid.UUID) -> WebhookDelivery:
    """Have an event sent again under the id that it had.

    Raises ``Conflict`` while it waits to be sent, and while its webhook is off.
    """
    access.require(principal, "write")
    try:
        wanted = reference if isinstance(reference, uuid.UUID) else uuid.UUID(reference)
    except ValueError:
        raise NotFound(_("No such delivery.")) from None
    with transaction.atomic():
        rows = WebhookDelivery.objects.select_for_update(of=("self",)).select_related("owner")
        row = rows.filter(uid=wanted).first()
        hook = _hook_of(principal, row)
        if row is None or hook is None:
            raise NotFound(_("No such delivery."))
        if not hook.is_enabled:
            raise Conflict(_("The webhook is switched off."), code="disabled")
        if row.state == WebhookDelivery.State.WAITING:
            raise Conflict(_("This is still to be sent."), code="waiting")
        row.state, row.attempts, row.due_at = WebhookDelivery.State.WAITING, 0, now()
        row.save(update_fields=["state", "attempts", "due_at"])
        # Whoever asks wants it now: the pause of a receiver that failed is over.
        Webhook.objects.filter(pk=hook.pk).update(paused_until=None)
        send_soon(hook.pk)
        audit.record(principal, "webhook.redeliver", owner=hook.owner, ids=[hook.pk])
    return row


def _hook_of(principal: Principal, row: WebhookDelivery | None) -> Webhook | None:
    if row is None:
        return None
    found = Webhook.objects.select_related("owner").filter(pk=row.webhook_id).first()
    if found is None or not (
        access.may_name_owners(principal) or found.owner_id == principal.owner
    ):
        return None
    return found
