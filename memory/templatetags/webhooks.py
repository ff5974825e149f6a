"""Filters of the pages of webhooks: states and failures in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from django import template
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from memory.models import Webhook
from memory.services.webhooks.events import EVENTS

register = template.Library()

STATES: Final[Mapping[str, Promise]] = {
    "waiting": pgettext_lazy("state of a delivery", "waiting"),
    "sent": pgettext_lazy("state of a delivery", "sent"),
    "failed": pgettext_lazy("state of a delivery", "given up"),
}
CHIPS: Final[Mapping[str, str]] = {"waiting": "pending", "sent": "on", "failed": "failed"}
OFF: Final[Mapping[str, Promise]] = {
    "asked": gettext_lazy("It was switched off here."),
    "gone": gettext_lazy("The receiver said that it is gone (410)."),
    "failing": gettext_lazy("It had failed for three days."),
}
FAILURES: Final[Mapping[str, Promise]] = {
    "timeout": gettext_lazy("no answer in time"),
    "connect_failed": gettext_lazy("no connection"),
    "tls_failed": gettext_lazy("the secure connection failed"),
    "proxy_refused": gettext_lazy("the proxy refused the connection"),
    "dns_failed": gettext_lazy("the name has no address"),
    "redirect_refused": gettext_lazy("it redirects, which is not followed"),
    "secret_unreadable": gettext_lazy("its secret was sealed elsewhere: give it a new one"),
}


@register.filter
def delivery_state(value: str) -> str:
    """A state of a delivery in words."""
    return str(STATES.get(value, value))


@register.filter
def delivery_chip(value: str) -> str:
    """The look of a state."""
    return CHIPS.get(value, "off")


@register.filter
def off_reason(hook: Webhook) -> str:
    """Why a webhook is off."""
    return str(OFF.get(hook.disabled_reason, ""))


@register.filter
def event_names(hook: Webhook) -> str:
    """The events that a webhook is told of."""
    return _("all") if set(EVENTS) <= set(hook.events) else ", ".join(hook.events)


@register.filter
def place_of(url: str) -> str:
    """The host of an address: what follows may be a secret."""
    return urlsplit(url).netloc


@register.filter
def failure_text(code: str) -> str:
    """Why an attempt failed, in words."""
    if code.startswith("http_"):
        return _("status %(status)s") % {"status": code.removeprefix("http_")}
    if code.startswith("url_blocked"):
        return _("the address may not be called (%(reason)s)") % {"reason": code.partition(":")[2]}
    return str(FAILURES.get(code, code))
