"""A small cache with both a size and an age limit."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class CacheStats:
    """Look-ups that found something, those that did not, and entries held now."""

    hits: int
    misses: int
    size: int

    @property
    def hit_rate(self) -> float:
        """Share of the look-ups that found something, 0 to 1; 0 before the first."""
        asked = self.hits + self.misses
        return self.hits / asked if asked else 0.0


class LruCache(Generic[K, V]):
    """Forgets what was not read for longest, and everything older than ``ttl_s``. Thread-safe.

    The age counts from ``put``; reading does not renew it.
    """

    def __init__(
        self, max_entries: int, ttl_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._max_entries = max_entries
        self._ttl_s = ttl_s
        self._clock = clock
        self._lock = Lock()
        self._entries: OrderedDict[K, tuple[float, V]] = OrderedDict()
        self._hits = 0
        self._misses = 0

    def get(self, key: K) -> V | None:
        """The value of a key, or None when it is unknown or too old."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None and self._clock() - entry[0] >= self._ttl_s:
                del self._entries[key]
                entry = None
            if entry is None:
                self._misses += 1
                return None
            self._entries.move_to_end(key)
            self._hits += 1
            return entry[1]

    def put(self, key: K, value: V) -> None:
        """Keep a value, forgetting the one read longest ago when there are too many."""
        with self._lock:
            self._entries[key] = (self._clock(), value)
            self._entries.move_to_end(key)
            while len(self._entries) > self._max_entries:
                self._entries.popitem(last=False)

    def clear(self) -> None:
        """Forget everything, the counts too."""
        with self._lock:
            self._entries.clear()
            self._hits = self._misses = 0

    @property
    def stats(self) -> CacheStats:
        with self._lock:
            return CacheStats(self._hits, self._misses, len(self._entries))
