"""What an HTTP status means and how long to wait before the next attempt."""

from __future__ import annotations

from dataclasses import dataclass

MAX_RETRIES = 5
MAX_RETRY_AFTER_MS = 30_000
LONGEST_NUMBER = 9
"""Digits of a Retry-After that are worth reading; more is only longer than the cap."""

CODES = {401: "auth_failed", 403: "auth_failed", 429: "rate_limited"}
RETRIED = frozenset({429, 500, 502, 503, 504})


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
