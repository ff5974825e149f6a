"""What this process has done, counted and timed in memory: plain dictionaries behind a lock.

Recording imports nothing and costs a microsecond or so; ``memory.services.metrics`` gives it the
form that Prometheus reads. Labels are few and fixed: never an owner, an id or a text.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

Labels = tuple[str, ...]
REQUEST_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
STAGE_BUCKETS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)
JOB_BUCKETS: Final = (0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 1800.0, 7200.0)

_lock = threading.Lock()


class Counter:
    """Sums by their labels. ``name`` is without the prefix and suffix of Prometheus."""

    def __init__(self, name: str, text: str, labels: Labels = ()) -> None:
        self.name = name
        self.text = text
        self.labels = labels
        self._sums: dict[Labels, float] = {}

    def add(self, *labels: str, amount: float = 1) -> None:
        """Add to the sum of these labels."""
        with _lock:
            self._sums[labels] = self._sums.get(labels, 0) + amount

    def read(self) -> Mapping[Labels, float]:
        """The sums as they are now."""
        with _lock:
            return dict(self._sums)

    def clear(self) -> None:
        """Start anew (tests)."""
        with _lock:
            self._sums.clear()


@dataclass(slots=True)
class Spread:
    """Counts for each bucket, the last one for what is longer; not summed up."""

    counts: list[int]
    total: float = 0.0


class Timer:
    """Seconds by their labels, in buckets."""

    def __init__(self, name: str, text: str, labels: Labels, buckets: Sequence[float]) -> None:
        self.name = name
        self.text = text
        self.labels = labels
        self.buckets = tuple(buckets)
        self._spreads: dict[Labels, Spread] = {}

    def add(self, *labels: str, seconds: float) -> None:
        """Note that something took so long."""
        place = bisect_left(self.buckets, seconds)
        with _lock:
            spread = self._spreads.get(labels)
            if spread is None:
                spread = self._spreads[labels] = Spread([0] * (len(self.buckets) + 1))
            spread.counts[place] += 1
            spread.total += seconds

    def read(self) -> Mapping[Labels, Spread]:
        """What was noted so far."""
        with _lock:
            return {
                labels: Spread(list(spread.counts), spread.total)
                for labels, spread in self._spreads.items()
            }

    def clear(self) -> None:
        """Start anew (tests)."""
        with _lock:
            self._spreads.clear()


REQUESTS: Final = Counter(
    "http_requests", "Requests that were answered.", ("method", "route", "status")
)
REQUEST_TIME: Final = Timer(
    "http_request_duration_seconds",
    "Time from a request to its answer.",
    ("method", "route"),
    REQUEST_BUCKETS,
)
RETRIEVALS: Final = Counter(
    "retrievals", "Retrievals by the tier that served and what came of them.", ("tier", "outcome")
)
RETRIEVAL_TIME: Final = Timer(
    "retrieval_duration_seconds", "Time of one retrieval.", ("tier",), STAGE_BUCKETS
)
STAGE_TIME: Final = Timer(
    "retrieval_stage_duration_seconds",
    "Time of one stage of a retrieval.",
    ("stage",),
    STAGE_BUCKETS,
)
DEGRADED: Final = Counter(
    "retrieval_degraded", "Retrievals that did without a tier, and why.", ("tier", "code")
)
JOBS_ENDED: Final = Counter("jobs_ended", "Jobs that ended in this process.", ("kind", "state"))
JOB_TIME: Final = Timer(
    "job_duration_seconds", "Time of one job in this process.", ("kind",), JOB_BUCKETS
)
WEBHOOK_ATTEMPTS: Final = Counter(
    "webhook_attempts", "Requests to webhooks from this process.", ("outcome",)
)
INJECTED: Final = Counter("injected_tokens", "Tokens of memories that were put into chats.")
COUNTERS: Final = (REQUESTS, RETRIEVALS, DEGRADED, JOBS_ENDED, WEBHOOK_ATTEMPTS, INJECTED)
TIMERS: Final = (REQUEST_TIME, RETRIEVAL_TIME, STAGE_TIME, JOB_TIME)
METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def request(method: str, route: str, status: int, seconds: float) -> None:
    """Note one answered request. ``route`` is the pattern of its address."""
    known = method_of(method)
    REQUESTS.add(known, route, str(status))
    REQUEST_TIME.add(known, route, seconds=seconds)


def method_of(method: str) -> str:
    """A method that is known, or ``other``: clients may call theirs anything."""
    return method if method in METHODS else "other"


def injected_tokens(count: int) -> None:
    """Note tokens of memories that went into one chat request."""
    INJECTED.add(amount=count)


def clear() -> None:
    """Start anew (tests)."""
    for counter in COUNTERS:
        counter.clear()
    for timer in TIMERS:
        timer.clear()
