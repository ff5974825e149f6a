"""Webhooks in the studio: the list, one with its log, and what can be done to it."""

from __future__ import annotations

import uuid
from typing import Any, Final

from django.http import HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django_htmx.http import HttpResponseClientRedirect

from memory.errors import Conflict, Invalid
from memory.models import Webhook
from memory.services.webhooks import hooks, log
from memory.templatetags.webhooks import failure_text
from memory.views._notice import Notice, remember
from memory.views._principal import StudioRequest, studio
from memory.views._render import render_page, sent
from memory.webhook_forms import NewWebhookForm, WebhookForm, webhook_form

DIALOG: Final = {"dialog": "form"}
LIST: Final = "memory/webhooks.html"
ADD: Final = "memory/webhook_add.html"
ONE: Final = "memory/webhook.html"
SHOWN: Final = 50


@studio("GET")
def index(request: StudioRequest) -> HttpResponse:
    """Every webhook."""
    return render_page(request, LIST, {"hooks": hooks.list_hooks(request.principal)})


@studio("GET", "POST")
def add(request: StudioRequest) -> HttpResponse:
    """The form for a new webhook; the answer shows its secret, which is never shown again."""
    form = NewWebhookForm(sent(request), auto_id="hook-%s", owners=hooks.owners(request.principal))
    if request.method == "POST" and form.is_valid():
        try:
            owner = form.cleaned_data["owner"]
            made = hooks.create(request.principal, form.draft(), owner=owner)
            return _shown_once(request, *made)
        except (Invalid, Conflict) as error:
            form.absorb(error)
    status = form.status if form.is_bound else 200
    return render_page(request, ADD, {"form": form}, partials=DIALOG, status=status)


@studio("GET", "POST")
def show(request: StudioRequest, webhook_id: uuid.UUID) -> HttpResponse:
    """One webhook with its log; POST changes it."""
    hook = hooks.get(request.principal, webhook_id)
    if request.method == "GET":
        return _page(request, hook, webhook_form(hook))
    form = WebhookForm(request.POST, auto_id="hook-%s")
    if form.is_valid():
        try:
            hooks.update(request.principal, webhook_id, form.cleaned_data)
            return _to(request, hook, Notice(_("Webhook saved.")))
        except (Invalid, Conflict) as error:
            form.absorb(error)
    return _page(request, hook, form, status=form.status)


@studio("POST")
def switch(request: StudioRequest, webhook_id: uuid.UUID) -> HttpResponse:
    """Switch a webhook on or off."""
    is_on = request.POST.get("enabled") == "1"
    hook = hooks.update(request.principal, webhook_id, {"is_enabled": is_on})
    text = _("The webhook is switched on.") if is_on else _("The webhook is switched off.")
    return _to(request, hook, Notice(text))


@studio("POST")
def test(request: StudioRequest, webhook_id: uuid.UUID) -> HttpResponse:
    """Send a test event and tell what came of it."""
    row = log.test(request.principal, webhook_id)
    if row.error_code:
        text = _("The test did not arrive: %(reason)s") % {"reason": failure_text(row.error_code)}
        notice = Notice(text, level="bad")
    else:
        text = _("The test arrived; the receiver answered %(status)s within %(ms)s ms.")
        notice = Notice(text % {"status": row.status_code, "ms": round(row.latency_ms)})
    return _to(request, row.webhook, notice)


@studio("POST")
def rotate(request: StudioRequest, webhook_id: uuid.UUID) -> HttpResponse:
    """Give a webhook a new secret, shown once."""
    return _shown_once(request, *hooks.rotate(request.principal, webhook_id))


@studio("POST")
def remove(request: StudioRequest, webhook_id: uuid.UUID) -> HttpResponse:
    """Remove a webhook with its log."""
    hook = hooks.remove(request.principal, webhook_id)
    text = _("The webhook “%(name)s” is removed.") % {"name": hook.name}
    return _go(request, reverse("webhooks"), Notice(text))


@studio("POST")
def redeliver(request: StudioRequest, delivery_id: uuid.UUID) -> HttpResponse:
    """Send an event again."""
    row = log.redeliver(request.principal, delivery_id)
    return _to(request, row.webhook, Notice(_("The event is sent again in a moment.")))


def _page(
    request: StudioRequest, hook: Webhook, form: WebhookForm, *, status: int = 200
) -> HttpResponse:
    context: dict[str, Any] = {
        "hook": hook,
        "form": form,
        "log": log.deliveries(request.principal, hook.pk, limit=SHOWN),
    }
    return render_page(request, ONE, context, status=status)


def _shown_once(request: StudioRequest, hook: Webhook, secret: str) -> HttpResponse:
    context = {"hook": hook, "secret": secret}
    response = render_page(request, ADD, context, partials=DIALOG)
    response["Cache-Control"] = "no-store"
    return response


def _to(request: StudioRequest, hook: Webhook, notice: Notice) -> HttpResponse:
    return _go(request, reverse("webhook", args=[hook.pk]), notice)


def _go(request: StudioRequest, address: str, notice: Notice) -> HttpResponse:
    remember(request, notice)
    if request.htmx:
        return HttpResponseClientRedirect(address)
    return HttpResponseRedirect(address, status=303)
