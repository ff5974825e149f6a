"""Webhooks: made with their secret shown once, listed, changed, removed."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from engine.net.errors import UrlBlocked
from engine.net.policy import check_url
from memory import secretbox, subscriptions
from memory.clock import now
from memory.errors import Conflict, Invalid, NotFound
from memory.models import ApiKey, Webhook
from memory.principal import Principal
from memory.services import access, audit
from memory.services.drafts import is_storable
from memory.services.webhooks import outbound, signing
from memory.services.webhooks.events import EVENTS

MAX_NAME: Final = 120
MAX_URL: Final = 2000
MOST: Final = 50
"""Webhooks of one owner."""
CHANGEABLE: Final = frozenset({"name", "url", "events", "include_content", "is_enabled"})


@dataclass(frozen=True, slots=True)
class WebhookDraft:
    """A webhook as asked for."""

    name: str
    url: str
    events: tuple[str, ...] = EVENTS
    include_content: bool = False
    is_enabled: bool = True


def list_hooks(principal: Principal) -> list[Webhook]:
    """The webhooks the caller may see: all for a manager, its own for a key."""
    access.require(principal, "read")
    return list(_visible(principal).order_by("name", "created_at"))


def get(principal: Principal, reference: str | uuid.UUID) -> Webhook:
    """One webhook. Raises ``NotFound`` also for another owner's."""
    access.require(principal, "read")
    return _find(principal, reference)


def create(
    principal: Principal, draft: WebhookDraft, *, owner: str | None = None, all_owners: bool = False
) -> tuple[Webhook, str]:
    """Make a webhook; the secret in the answer is never shown again.

    It hears of its owner's events: the caller's, or whom a manager names. ``all_owners`` is for
    managers, and what the studio means when it names nobody.
    """
    access.require(principal, "write")
    if all_owners:
        access.require(principal, "manage")
    nobody = principal.owner is None and not access.reference_of(owner)
    key = None if all_owners or nobody else access.write_owner(principal, owner)
    values = asdict(draft)
    _check(principal, values)
    secret = signing.new_secret()
    with transaction.atomic():
        if Webhook.objects.filter(owner=key).count() >= MOST:
            message = _("There are %(most)s webhooks already.") % {"most": MOST}
            raise Conflict(message, code="too_many")
        hook = Webhook.objects.create(
            **_stored(values),
            owner=key,
            is_trusted=principal.may("manage"),
            secret=secretbox.seal(secret),
            secret_hint=secret[-4:],
            created_at=now(),
            updated_at=now(),
        )
        audit.record(principal, "webhook.create", owner=key, ids=[hook.pk])
    _changed()
    return hook, secret


def update(principal: Principal, reference: str | uuid.UUID, changes: Mapping[str, Any]) -> Webhook:
    """Change fields by their model names. Switched on again, its failures are forgotten."""
    access.require(principal, "write")
    known = {name: value for name, value in changes.items() if name in CHANGEABLE}
    _check(principal, known)
    with transaction.atomic():
        hook = _find(principal, reference, lock=True)
        if hook.include_content and known.get("include_content", True):
            # Whoever says where texts are sent, or when, could as well read them.
            access.require(principal, "read")
        if known.get("url", hook.url) != hook.url:
            hook.is_trusted = principal.may("manage")
        was_enabled = hook.is_enabled
        for name, value in _stored(known).items():
            setattr(hook, name, value)
        if hook.is_enabled != was_enabled:
            _switched(hook)
        hook.updated_at = now()
        hook.save()
        audit.record(principal, "webhook.update", owner=hook.owner, ids=[hook.pk])
    _changed()
    return hook


def rotate(principal: Principal, reference: str | uuid.UUID) -> tuple[Webhook, str]:
    """Give a webhook a new secret, shown once; the next request is signed by it."""
    access.require(principal, "write")
    secret = signing.new_secret()
    with transaction.atomic():
        hook = _find(principal, reference, lock=True)
        hook.secret, hook.secret_hint = secretbox.seal(secret), secret[-4:]
        hook.updated_at = now()
        hook.save(update_fields=["secret", "secret_hint", "updated_at"])
        audit.record(principal, "webhook.rotate", owner=hook.owner, ids=[hook.pk])
    return hook, secret


def remove(principal: Principal, reference: str | uuid.UUID) -> Webhook:
    """Remove a webhook with its log; what it was still to be told is not sent."""
    access.require(principal, "write")
    with transaction.atomic():
        hook = _find(principal, reference, lock=True)
        audit.record(principal, "webhook.delete", owner=hook.owner, ids=[hook.pk])
        gone = hook.pk
        hook.delete()
        hook.pk = gone
    _changed()
    return hook


def owners(principal: Principal) -> list[ApiKey]:
    """Whose events a caller may have a webhook told of."""
    return access.choices(principal)


def _changed() -> None:
    # At once, and after the commit for whoever read the rows in between.
    subscriptions.reset()
    transaction.on_commit(subscriptions.reset)


def _switched(hook: Webhook) -> None:
    hook.disabled_reason = Webhook.Off.NOT if hook.is_enabled else Webhook.Off.ASKED
    hook.failures, hook.failing_since, hook.paused_until, hook.last_error = 0, None, None, ""


def _stored(values: Mapping[str, Any]) -> dict[str, Any]:
    stored = dict(values)
    for name in ("name", "url"):
        if name in stored:
            stored[name] = stored[name].strip()
    if "events" in stored:
        stored["events"] = [name for name in EVENTS if name in stored["events"]]
    return stored


def _check(principal: Principal, values: Mapping[str, Any]) -> None:
    """Raise ``Invalid`` for what cannot be a webhook."""
    problems: dict[str, str] = {}
    name = values.get("name", "-").strip()
    if not name or len(name) > MAX_NAME or not is_storable(name):
        problems["name"] = _("A name of 1 to 120 characters is needed.")
    wanted = values.get("events", EVENTS)
    if not wanted or set(wanted) - set(EVENTS):
        problems["events"] = _("At least one of these is needed: %(names)s.") % {
            "names": ", ".join(EVENTS)
        }
    if "url" in values and (problem := _url_problem(principal, values["url"].strip())):
        problems["url"] = problem
    if problems:
        raise Invalid(_("The webhook cannot be set up like that."), fields=problems)
    if values.get("include_content"):
        access.require(principal, "read")


def _url_problem(principal: Principal, url: str) -> str:
    if len(url) > MAX_URL:
        return _("An address has %(most)s characters at most.") % {"most": MAX_URL}
    try:
        check_url(url, outbound.policy(principal.may("manage")), allow_query=True)
    except UrlBlocked as error:
        if error.is_invalid:
            return _("This is no address such as https://example.com/hook.")
        if error.reason == "https_required":
            return _("Only addresses with https:// may be called.")
        return _("This address may not be called (%(reason)s).") % {"reason": error.reason}
    return ""


def _find(principal: Principal, reference: str | uuid.UUID, *, lock: bool = False) -> Webhook:
    try:
        wanted = reference if isinstance(reference, uuid.UUID) else uuid.UUID(reference)
    except ValueError:
        raise NotFound(_("No such webhook.")) from None
    rows = _visible(principal)
    if lock:
        rows = rows.select_for_update(of=("self",))
    hook = rows.filter(pk=wanted).first()
    if hook is None:
        raise NotFound(_("No such webhook."))
    return hook


def _visible(principal: Principal) -> QuerySet[Webhook]:
    rows = Webhook.objects.select_related("owner")
    if access.may_name_owners(principal):
        return rows
    return rows.filter(owner=principal.owner)
