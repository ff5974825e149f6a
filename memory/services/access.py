"""Checks every service makes first: scopes, and which owners a caller may act for."""

from __future__ import annotations

import uuid
from dataclasses import replace

from django.utils.translation import gettext as _

from memory.errors import Forbidden, NotFound
from memory.models import ApiKey
from memory.principal import Principal


def require(principal: Principal, scope: str) -> None:
    """Raise ``Forbidden`` unless the principal holds a scope."""
    if not principal.may(scope):
        raise Forbidden(
            _("This needs the scope “%(scope)s”.") % {"scope": scope}, code="scope_missing"
        )


def may_name_owners(principal: Principal) -> bool:
    """Whether the principal may act for owners other than itself."""
    return principal.owner is None or principal.may("manage")


def for_itself(principal: Principal) -> Principal:
    """The same caller without the right to name other owners or to see what they have."""
    return replace(principal, scopes=principal.scopes - {"manage"})


def reference_of(value: object) -> str | None:
    """An owner reference as a client sends it: a text that is not blank, else None."""
    return value.strip() or None if isinstance(value, str) else None


def find(reference: str) -> ApiKey:
    """The key with this public id or name. Raises ``NotFound``."""
    try:
        match = ApiKey.objects.filter(uid=uuid.UUID(reference)).first()
    except ValueError:
        match = None
    match = match or ApiKey.objects.filter(name=reference).first()
    if match is None:
        raise NotFound(_("No such API key."), fields={"apiKeyId": _("No such API key.")})
    return match


def default_key() -> ApiKey:
    """The key that session writes without an owner go to."""
    key = ApiKey.objects.filter(is_default=True).first()
    if key is None:
        raise NotFound(_("There is no default API key yet."))
    return key


def write_owner(principal: Principal, reference: str | None) -> ApiKey:
    """The owner a write goes to: the key itself, or whom a manager names."""
    reference = reference_of(reference)
    if principal.owner is not None:
        own = ApiKey.objects.get(pk=principal.owner)
        if not reference or reference in (str(own.uid), own.name):
            return own
        if not principal.may("manage"):
            raise Forbidden(_("This key may only write its own memories."), code="not_owner")
        return find(reference)
    return find(reference) if reference else default_key()


def read_owner(principal: Principal, reference: str | None) -> ApiKey | None:
    """The owner a read is limited to; None only for a caller who may see every owner.

    An ordinary key is always limited to itself, whatever it sends.
    """
    reference = reference_of(reference)
    if principal.owner is not None and not principal.may("manage"):
        return ApiKey.objects.get(pk=principal.owner)
    if reference:
        return find(reference)
    if principal.owner is not None:
        return ApiKey.objects.get(pk=principal.owner)
    return None


def is_limited_to(principal: Principal, key: ApiKey) -> bool:
    """Whether a caller reads what belongs to a key, whatever it sends."""
    return principal.owner == key.pk and not principal.may("manage")


def choices(principal: Principal) -> list[ApiKey]:
    """The owners a caller may pick, the default one first."""
    keys = ApiKey.objects.order_by("-is_default", "name")
    if principal.owner is not None and not principal.may("manage"):
        keys = keys.filter(pk=principal.owner)
    return list(keys)
