"""Sealing of secrets that the database holds (credentials of other services)."""

from __future__ import annotations

from cryptography.fernet import Fernet, InvalidToken
from django.conf import settings


def seal(text: str) -> str:
    """Encrypt a secret with the key of this installation; an empty text stays empty."""
    return Fernet(settings.ENCRYPTION_KEY).encrypt(text.encode()).decode() if text else ""


def open_sealed(sealed: str) -> str:
    """The secret, or an empty text when it was sealed with another key."""
    if not sealed:
        return ""
    try:
        return Fernet(settings.ENCRYPTION_KEY).decrypt(sealed.encode()).decode()
    except InvalidToken:
        return ""


def mask(text: str) -> str | None:
    """``***`` and the last four characters; None without a secret."""
    return f"***{text[-4:]}" if text else None
