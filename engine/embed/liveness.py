"""How a source knows that it works: by a recent success, or by embedding a word now."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from engine.errors import EngineError
from engine.protocols import EmbeddingSource
from engine.types import Health, Purpose

FRESH_S = 60.0
WORD = "health"

Detail = Mapping[str, str | int | float | bool | None]


class Liveness:
    """Remembers when a source last succeeded."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last: float | None = None

    def succeeded(self) -> None:
        """Note a success of this moment."""
        self._last = self._clock()

    def check(self, source: EmbeddingSource, detail: Detail) -> Health:
        """The state of a source. Never raises."""
        shown = {"source": source.name, "model": source.model, **detail}
        if self._last is not None and self._clock() - self._last < FRESH_S:
            return Health(True, detail=shown)
        try:
            source.embed([WORD], purpose=Purpose.QUERY)
        except EngineError as error:
            return Health(False, str(error), {**shown, "code": error.code})
        except Exception as error:  # a health check reports, whatever went wrong
            name = type(error).__name__
            detail = {**shown, "code": "unknown", "error": name}
            return Health(False, f"Unexpected {name}.", detail)
        return Health(True, detail=shown)
