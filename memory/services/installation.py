"""Whether this process has the keys of the installation that its database belongs to.

What one host has sealed or signed another cannot read with another key; that shows long after the
start, and as something else. The database keeps a fingerprint of each key, never a key.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

from django.conf import settings

from memory.models import InstallationFact

KEYS: Final = {
    "MEMORY_STUDIO_ENCRYPTION_KEY": "ENCRYPTION_KEY",
    "MEMORY_STUDIO_SECRET_KEY": "SECRET_KEY",
}
"""Names of the variables, and of the settings that hold their values."""


def differing_keys() -> list[str]:
    """Variables whose key is not the installation's; the first process says what that is."""
    differing = []
    for variable, setting in KEYS.items():
        kept, _created = InstallationFact.objects.get_or_create(
            name=variable, defaults={"value": _fingerprint(setting)}
        )
        if not hmac.compare_digest(kept.value, _fingerprint(setting)):
            differing.append(variable)
    return differing


def keep_keys() -> list[str]:
    """From now on the keys of this process are the installation's; nothing differs any more."""
    for variable, setting in KEYS.items():
        InstallationFact.objects.update_or_create(
            name=variable, defaults={"value": _fingerprint(setting)}
        )
    return []


def _fingerprint(setting: str) -> str:
    key = str(getattr(settings, setting))
    return hmac.new(key.encode(), b"memory-studio fingerprint", hashlib.sha256).hexdigest()[:32]
