"""First start, one-time sign-in links and the studio user's password."""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta
from typing import Final

from django.contrib.auth import get_user_model, password_validation
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import transaction
from django.urls import reverse

from engine.database import lock
from memory import wiring
from memory.clock import now
from memory.errors import Invalid
from memory.models import ApiKey, SignInLink
from memory.principal import SYSTEM
from memory.services import keys

USERNAME: Final = "studio"
LINK_LIFE: Final = timedelta(hours=24)


def first_start() -> None:
    """Make the key ``Default`` and the studio user where they are missing."""
    with transaction.atomic():
        # Several may start at once on a server.
        lock(wiring.connect(), "first start")
        if not ApiKey.objects.filter(is_default=True).exists():
            keys.create(SYSTEM, "Default", scopes=("read", "write", "chat"), is_default=True)
        if not get_user_model().objects.filter(username=USERNAME).exists():
            user = User(username=USERNAME, is_staff=True, is_superuser=True)
            user.set_unusable_password()
            user.save()


def has_password() -> bool:
    """Whether someone has set a password, so that links are no longer printed."""
    return any(user.has_usable_password() for user in User.objects.filter(is_active=True))


def sign_in_link(base_url: str) -> str | None:
    """A fresh link that works once within a day; None when a password exists.

    Earlier unused links stop working: only the newest terminal output signs in. Where several
    studios share a database, each one's output does.
    """
    if has_password():
        return None
    token = secrets.token_urlsafe(24)
    moment = now()
    with transaction.atomic():
        links = SignInLink.objects.all()
        (links if wiring.is_alone() else links.filter(expires_at__lt=moment)).delete()
        SignInLink.objects.create(
            token_hash=_hash(token),
            user=User.objects.get(username=USERNAME),
            created_at=moment,
            expires_at=moment + LINK_LIFE,
        )
    return base_url.rstrip("/") + reverse("signin-link", args=[token])


def use_link(token: str) -> User | None:
    """The user a link signs in, or None when it is unknown, used or too old."""
    moment = now()
    claimed = SignInLink.objects.filter(
        token_hash=_hash(token), used_at__isnull=True, expires_at__gt=moment
    ).update(used_at=moment)
    if claimed != 1:
        return None
    return SignInLink.objects.select_related("user").get(token_hash=_hash(token)).user


def set_password(user_id: int, password: str) -> None:
    """Set a studio user's password. Raises ``Invalid`` with what is wrong with it."""
    user = User.objects.get(pk=user_id)
    try:
        password_validation.validate_password(password, user)
    except ValidationError as error:
        message = " ".join(error.messages)
        raise Invalid(message, fields={"password": message}) from None
    user.set_password(password)
    user.save(update_fields=["password"])


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
