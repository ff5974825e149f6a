"""Signatures by the Standard Webhooks scheme (standardwebhooks.com, symmetric, ``v1``)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from datetime import datetime
from typing import Final

PREFIX: Final = "whsec_"
SECRET_BYTES: Final = 32


def new_secret() -> str:
    """A secret as receivers configure it: ``whsec_`` and 32 random bytes in base64."""
    return PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def headers(secret: str, message_id: str, moment: datetime, body: bytes) -> dict[str, str]:
    """The three headers of a message that is sent at a moment."""
    stamp = str(int(moment.timestamp()))
    return {
        "webhook-id": message_id,
        "webhook-timestamp": stamp,
        "webhook-signature": f"v1,{signature(secret, message_id, stamp, body)}",
    }


def signature(secret: str, message_id: str, stamp: str, body: bytes) -> str:
    """Base64 of the HMAC-SHA256 over id, time stamp and body, with dots between them."""
    key = base64.b64decode(secret.removeprefix(PREFIX))
    signed = b".".join((message_id.encode(), stamp.encode(), body))
    return base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
