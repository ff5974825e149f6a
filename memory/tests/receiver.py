"""A receiver of webhooks on loopback: it checks every signature as the documentation says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from engine.testing.fake_provider import Answer, Provider, Request, serving
from memory.clock import now
from memory.models import Webhook, WebhookDelivery
from memory.principal import Principal
from memory.services.webhooks import delivering, hooks
from memory.services.webhooks.events import EVENTS
from memory.services.webhooks.hooks import WebhookDraft
from memory.services.webhooks.signing import signature


class Receiver:
    """Takes what is signed by its secret. Faults go through ``script``, one for each request."""

    def __init__(self, provider: Provider) -> None:
        self.provider = provider
        self.secret = ""
        provider.respond = self._respond

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.provider.port}/hook"

    @property
    def script(self) -> list[Answer]:
        """Answers that come first."""
        return self.provider.script

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """What arrived."""
        return [request.json() for request in self.provider.requests]

    @property
    def ids(self) -> list[str]:
        """The ids of the messages that arrived."""
        return [request.headers["webhook-id"] for request in self.provider.requests]

    def of(self, principal: Principal, **fields: Any) -> Webhook:
        """A webhook that sends here."""
        draft = WebhookDraft(
            fields.pop("name", "app"),
            self.url,
            fields.pop("events", EVENTS),
            include_content=fields.pop("include_content", False),
        )
        hook, self.secret = hooks.create(principal, draft, **fields)
        return hook

    def _respond(self, request: Request) -> Answer:
        head = request.headers
        made = signature(self.secret, head["webhook-id"], head["webhook-timestamp"], request.body)
        json.loads(request.body)
        return Answer(204 if head["webhook-signature"] == f"v1,{made}" else 401)


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Run a receiver on a free port."""
    with serving() as provider:
        yield Receiver(provider)


def later(**time: float) -> int:
    """Let time pass for what is to be sent, and do what the half-minute round does."""
    step = timedelta(**time)
    for row in WebhookDelivery.objects.filter(due_at__isnull=False):
        WebhookDelivery.objects.filter(pk=row.pk).update(due_at=(row.due_at or now()) - step)
    for hook in Webhook.objects.all():
        Webhook.objects.filter(pk=hook.pk).update(
            **{
                name: moment - step
                for name in ("paused_until", "failing_since")
                if (moment := getattr(hook, name)) is not None
            }
        )
    return delivering.resume()
