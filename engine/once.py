"""What is costly and made on first use."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")


class Once(Generic[T]):
    """A value that ``make`` makes when it is first asked for, whichever thread asks.

    What ``make`` raises is raised; the next who asks tries again.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._lock = Lock()
        self._made: T | None = None

    @property
    def is_made(self) -> bool:
        """Whether it is there, so that ``get`` costs nothing."""
        return self._made is not None

    def get(self) -> T:
        """The value; the others wait while one thread makes it."""
        if self._made is not None:
            return self._made
        with self._lock:
            if self._made is None:
                self._made = self._make()
            return self._made
