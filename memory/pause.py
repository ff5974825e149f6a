"""A server that has just failed is left alone for a moment, so that nobody waits for it again."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

logger = logging.getLogger("memory.pause")

PAUSE_S: Final = 5.0


class Pause:
    """Begins when the server fails. An outage is logged once, and so is its end."""

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._name = name
        self._clock = clock
        self._until: float | None = None

    @property
    def is_on(self) -> bool:
        """Whether the server is not to be asked now."""
        return self._until is not None and self._clock() < self._until

    @property
    def is_failing(self) -> bool:
        """Whether it has not answered since it failed."""
        return self._until is not None

    def begin(self, error: Exception) -> None:
        """It has failed."""
        if self._until is None:
            logger.warning("%s cannot be reached: %s", self._name, type(error).__name__)
        self._until = self._clock() + PAUSE_S

    def end(self) -> None:
        """It has answered."""
        if self._until is not None:
            logger.info("%s answers again", self._name)
            self._until = None
