"""A health check with its time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from engine.errors import EngineError
from engine.types import Health

Facts = Mapping[str, str | int | float | bool | None]


def checked(probe: Callable[[], Facts]) -> Health:
    """Run a real call: healthy with what it tells, or not and why. Never raises."""
    started = time.perf_counter()
    facts: Facts = {}
    reason, code = "", ""
    try:
        facts = probe()
    except EngineError as error:
        reason, code = str(error), error.code
    except Exception as error:  # whatever is broken: that is what health tells
        reason, code = f"It failed unexpectedly ({type(error).__name__}).", "unknown"
    took = round((time.perf_counter() - started) * 1000, 1)
    return Health(not reason, reason, {**facts, "latency_ms": took, "code": code})
