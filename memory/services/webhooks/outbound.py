"""One attempt to reach a webhook, through the product's own outbound HTTP."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final

from engine.errors import EngineError
from engine.net.errors import HttpFailed, UrlBlocked
from engine.net.policy import OPERATOR, UrlPolicy
from memory.clock import now

if TYPE_CHECKING:
    from engine.net.client import HttpClient

PUBLIC: Final = UrlPolicy(
    allow_private=False, allow_loopback=False, require_https=True, names_may_be_loopback=False
)
"""What an ordinary key may have called: HTTPS to the public internet."""
CONNECT_S: Final = 5.0
TOTAL_S: Final = 10.0
GONE: Final = 410
BUSY: Final = frozenset({429, 503})
MOST_DIGITS: Final = 9


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of an attempt. ``error`` is empty when the receiver has taken the event.

    ``retry_after_s`` is what it asked for; ``status`` None means that there was no answer.
    """

    error: str
    status: int | None = None
    retry_after_s: float = 0
    latency_ms: float = 0

    @property
    def is_silent(self) -> bool:
        """Whether whoever would answer is away or busy, so that other events fare no better."""
        return bool(self.error) and (self.status is None or self.status in BUSY)


_lock = threading.Lock()
_clients: dict[UrlPolicy, HttpClient] = {}


def policy(is_trusted: bool) -> UrlPolicy:
    """What an address may be: a manager's may lie in the local network."""
    return OPERATOR if is_trusted else PUBLIC


def post(
    url: str,
    content: bytes,
    headers: Mapping[str, str],
    *,
    is_trusted: bool,
    total_s: float = TOTAL_S,
) -> Outcome:
    """Send once. A redirect is a refusal, and nobody reads the body of the answer."""
    from engine.net.client import Limits

    limits = Limits(connect_s=min(CONNECT_S, total_s), total_s=total_s, retries=0)
    sent = {"Content-Type": "application/json", "Accept": "*/*", **headers}
    started = time.perf_counter()
    try:
        answer = _client(policy(is_trusted)).exchange(
            "POST", url, content, sent, limits, reads_body=False
        )
    except EngineError as error:
        return Outcome(_code(error), latency_ms=_since(started))
    return Outcome(
        _refusal(answer.status),
        answer.status,
        _asked(answer.headers.get("retry-after", "")) if answer.status in BUSY else 0,
        _since(started),
    )


def _client(rules: UrlPolicy) -> HttpClient:
    from engine.net.client import HttpClient
    from engine.net.proxies import Proxies

    with _lock:
        if rules not in _clients:
            _clients[rules] = HttpClient(rules, proxies=Proxies(None, os.environ))
        return _clients[rules]


def _code(error: EngineError) -> str:
    if isinstance(error, UrlBlocked):
        return error.reason if error.reason == "dns_failed" else f"{error.code}:{error.reason}"
    return error.code if isinstance(error, HttpFailed) else "failed"


def _refusal(status: int) -> str:
    if 200 <= status < 300:
        return ""
    return "redirect_refused" if 300 <= status < 400 else f"http_{status}"


def _asked(header: str) -> float:
    """Seconds of a Retry-After, which is a number or a date; 0 for anything else."""
    text = header.strip()
    if text.isascii() and text.isdigit():
        return float(text[:MOST_DIGITS])
    try:
        moment = parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return 0
    return max(0.0, ((moment if moment.tzinfo else _utc(moment)) - now()).total_seconds())


def _utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC)


def _since(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 1)
