"""Stops asking a service that keeps failing, for a while."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

from engine.errors import EngineError

Failure = TypeVar("Failure", bound=EngineError)


class CircuitBreaker(Generic[Failure]):
    """After ``threshold`` failures in a row, refuses for ``pause_s`` with the last reason.

    After the pause calls go through again; the next failure starts another pause at once. With
    ``alone`` only one call goes through after the pause, and the others wait for what it meets.
    """

    def __init__(
        self,
        *,
        threshold: int = 3,
        pause_s: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
        alone: bool = False,
    ) -> None:
        self._threshold = threshold
        self._pause_s = pause_s
        self._clock = clock
        self._alone = alone
        self._lock = Lock()
        self._failures = 0
        self._closed_until = 0.0
        self._last: Failure | None = None

    def check(self) -> None:
        """Raise the last failure again while the pause lasts."""
        with self._lock:
            last = self._last
            if last is None:
                return
            if self._clock() >= self._closed_until:
                if self._alone:
                    self._closed_until = self._clock() + self._pause_s
                return
        raise type(last)(str(last), code=last.code)

    @property
    def last(self) -> Failure | None:
        """The failure that it refuses with; None while calls go through."""
        with self._lock:
            return self._last

    def succeeded(self) -> None:
        """Forget earlier failures."""
        with self._lock:
            self._failures, self._last = 0, None

    def failed(self, error: Failure) -> None:
        """Count a failure."""
        with self._lock:
            self._failures += 1
            if self._failures >= self._threshold:
                self._last = error
                self._closed_until = self._clock() + self._pause_s
