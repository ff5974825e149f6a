"""What an HTTP status means and how long to wait before the next attempt."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from engine.net.errors import RETRIED

MAX_RETRIES = 5
MAX_RETRY_AFTER_MS = 30_000
LONGEST_NUMBER = 9
"""Digits of a Retry-After that are worth reading; more is only longer than the cap."""

CODES = {401: "auth_failed", 403: "auth_failed", 429: "rate_limited"}


RETRY_INFO = re.compile(rb'"retryDelay"\s*:\s*"(\d{1,6}(?:\.\d{1,9})?)s"')


@dataclass(frozen=True, slots=True)
class Outcome:
    """``error`` is empty for a success."""

    error: str
    is_retried: bool


def outcome(status: int) -> Outcome:
    """What to make of a status. Redirects are never followed."""
    if 200 <= status < 300:
        return Outcome("", False)
    if 300 <= status < 400:
        return Outcome("redirect_refused", False)
    return Outcome(CODES.get(status, "upstream_error"), status in RETRIED)


def asked_wait(header: str | None, body: bytes) -> str | None:
    """The wait a refusal asks for, as a Retry-After: the header, else Google's ``RetryInfo``.

    Google's APIs send no header; the body's ``google.rpc.RetryInfo`` has it, such as ``45.8s``.
    """
    if header is not None:
        return header
    found = RETRY_INFO.search(body)
    return None if found is None else str(math.ceil(float(found[1])))


def refused_key(body: bytes) -> bool:
    """Whether a refusal is about the key: Google's APIs answer 400 to one they do not know."""
    return b'"API_KEY_INVALID"' in body


def delay_ms(retry_index: int, *, backoff_ms: int, retry_after: str | None) -> int:
    """Wait before retry number ``retry_index`` (from 0): doubling, or longer if the server asks.

    Retry-After counts in whole seconds, up to 30; its date form and anything else is ignored.
    """
    wait = int(backoff_ms * 2**retry_index)
    asked = (retry_after or "").strip()
    if not (asked.isascii() and asked.isdigit()):
        return wait
    if len(asked.lstrip("0")) > LONGEST_NUMBER:
        return max(wait, MAX_RETRY_AFTER_MS)
    return max(wait, min(int(asked) * 1000, MAX_RETRY_AFTER_MS))
