"""API keys: made, listed, revoked, recognised."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from django.core import signing
from django.db import IntegrityError, transaction
from django.db.models import Count, Q
from django.utils.translation import gettext as _

from memory.clock import now
from memory.errors import Conflict, Invalid, Unauthorized
from memory.models import ApiKey
from memory.principal import SCOPES, Principal, studio_user
from memory.services import access, audit
from memory.services.drafts import is_storable

PREFIX: Final = "ms_"
MAX_NAME: Final = 120
USE_RESOLUTION: Final = timedelta(minutes=1)
LOCAL_PREFIX: Final = "mslocal_"
LOCAL_SALT: Final = "memory.services.keys.local_pass"
LOCAL_LIFE: Final = timedelta(minutes=1)


def _hash(secret: str) -> str:
    # A random 256-bit secret needs no slow hash: there is nothing to guess.
    return hashlib.sha256(secret.encode()).hexdigest()


def list_keys(principal: Principal) -> list[ApiKey]:
    """Every key with ``memory_count``, the number of its live memories."""
    access.require(principal, "manage")
    live = Q(memories__archived_at__isnull=True, memories__trashed_at__isnull=True)
    return list(
        ApiKey.objects.annotate(memory_count=Count("memories", filter=live)).order_by(
            "-is_default", "name"
        )
    )


def check_name(name: str) -> None:
    """Raise ``Invalid`` unless a key can have this name."""
    if not name or len(name) > MAX_NAME or not is_storable(name):
        message = _("A name of 1 to 120 characters is needed.")
        raise Invalid(message, fields={"name": message})


def create(
    principal: Principal,
    name: str,
    *,
    scopes: Iterable[str] = ("read", "write", "chat"),
    expires_at: datetime | None = None,
    is_default: bool = False,
) -> tuple[ApiKey, str]:
    """Make a key; the secret in the answer is never shown again."""
    access.require(principal, "manage")
    name, wanted = name.strip(), set(scopes)
    check_name(name)
    if not wanted or wanted - set(SCOPES):
        message = _("Scopes are read, write, chat and manage; at least one.")
        raise Invalid(message, fields={"scopes": message})
    secret = PREFIX + secrets.token_urlsafe(32)
    key = ApiKey(
        name=name,
        secret_hash=_hash(secret),
        secret_hint=secret[-4:],
        scopes=[scope for scope in SCOPES if scope in wanted],
        is_default=is_default,
        created_at=now(),
        expires_at=expires_at,
    )
    try:
        with transaction.atomic():
            key.save()
            audit.record(principal, "key.create", owner=key, ids=[key.uid])
    except IntegrityError:
        message = _("Another key has this name.")
        raise Conflict(message, fields={"name": message}) from None
    return key, secret


def revoke(principal: Principal, reference: str) -> ApiKey:
    """Make a key's secret useless. Its memories stay, for a manager to keep or export."""
    access.require(principal, "manage")
    key = access.find(reference)
    with transaction.atomic():
        if key.revoked_at is None:
            key.revoked_at, key.secret_hash = now(), None
            key.save(update_fields=["revoked_at", "secret_hash"])
            audit.record(principal, "key.revoke", owner=key, ids=[key.uid])
    return key


def rotate(principal: Principal, reference: str) -> tuple[ApiKey, str]:
    """Give a key a new secret, shown once; the old one stops working. Un-revokes the key."""
    access.require(principal, "manage")
    key = access.find(reference)
    secret = PREFIX + secrets.token_urlsafe(32)
    with transaction.atomic():
        key.secret_hash, key.secret_hint, key.revoked_at = _hash(secret), secret[-4:], None
        key.save(update_fields=["secret_hash", "secret_hint", "revoked_at"])
        audit.record(principal, "key.rotate", owner=key, ids=[key.uid])
    return key, secret


def authenticate(secret: str) -> Principal:
    """The principal of a bearer secret. Raises ``Unauthorized``."""
    if secret.startswith(LOCAL_PREFIX):
        return _of_local_pass(secret)
    return _used(_of_secret(secret))


def recognise(secret: str) -> ApiKey:
    """The key of a bearer secret, for an edge that may not wait for a write. ``mark_used`` follows.

    A pass of this machine stands for the key that it names, or for the default key. Raises
    ``Unauthorized``.
    """
    if secret.startswith(LOCAL_PREFIX):
        reference = _reference_in(secret)
        return _checked(access.find(reference) if reference else access.default_key())
    return _checked(_of_secret(secret))


def _of_secret(secret: str) -> ApiKey | None:
    return ApiKey.objects.filter(secret_hash=_hash(secret)).first() if secret else None


def local_pass(reference: str = "") -> str:
    """A bearer secret for commands on the machine itself, which hold the secret key of the
    installation: for a key named by public id or name, or, without one, for every owner.

    It is good for a minute.
    """
    return LOCAL_PREFIX + signing.dumps({"key": reference}, salt=LOCAL_SALT)


def _of_local_pass(secret: str) -> Principal:
    reference = _reference_in(secret)
    return acting(reference) if reference else studio_user("command line")


def _reference_in(secret: str) -> str:
    try:
        held = signing.loads(secret.removeprefix(LOCAL_PREFIX), salt=LOCAL_SALT, max_age=LOCAL_LIFE)
    except signing.BadSignature:
        raise Unauthorized(_("The API key is not valid.")) from None
    return str(held["key"])


def acting(reference: str | None = None) -> Principal:
    """The principal of a key named by public id or name; without one, of the default key.

    For commands on the machine itself, which need no secret. Raises ``NotFound``, and
    ``Unauthorized`` for a key that was revoked or has expired.
    """
    return _used(access.find(reference) if reference else access.default_key())


def _used(key: ApiKey | None) -> Principal:
    checked = _checked(key)
    mark_used(checked)
    return principal_of(checked)


def _checked(key: ApiKey | None) -> ApiKey:
    if key is None or key.revoked_at or (key.expires_at and key.expires_at <= now()):
        raise Unauthorized(_("The API key is not valid."))
    return key


def mark_used(key: ApiKey) -> None:
    """Remember that a key was used, to the minute."""
    moment = now()
    if key.last_used_at is None or moment - key.last_used_at > USE_RESOLUTION:
        ApiKey.objects.filter(pk=key.pk).update(last_used_at=moment)


def principal_of(key: ApiKey) -> Principal:
    """The principal that acts with a key."""
    return Principal(kind="key", name=key.name, scopes=frozenset(key.scopes), owner=key.pk)
