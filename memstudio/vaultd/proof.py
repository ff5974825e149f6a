"""What proves that a request comes from a process of this installation."""

from __future__ import annotations

import hmac
from functools import cache
from typing import Final

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

INFO: Final = b"memory-studio vaultd 1"
BYTES: Final = 32


def proof() -> bytes:
    """The secret that our processes share, in hexadecimal; nothing can be learnt from it."""
    return _derived(settings.ENCRYPTION_KEY)


def is_proven(given: bytes) -> bool:
    """Whether this is the secret; compared in constant time."""
    return hmac.compare_digest(given, proof())


@cache
def _derived(key: str) -> bytes:
    derive = HKDF(algorithm=SHA256(), length=BYTES, salt=None, info=INFO)
    return derive.derive(key.encode()).hex().encode()
