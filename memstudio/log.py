"""The log: one line for each event on standard error, quiet unless something is wrong."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any, Final

COLLECTOR: Final = "opentelemetry.exporter.otlp.proto.http.trace_exporter"


def config(level: str) -> dict[str, Any]:
    """Django's LOGGING. ``level`` holds for our own loggers; libraries speak from WARNING on."""
    own = {"level": level, "handlers": ["line"], "propagate": False}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"format": "{asctime} {levelname} {name}: {message}", "style": "{"}},
        "filters": {
            "no_traceback": {"()": "django.utils.log.CallbackFilter", "callback": _drop_traceback},
            "seldom": {"()": Seldom},
        },
        "handlers": {"line": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"level": "WARNING", "handlers": ["line"]},
        "loggers": {
            **dict.fromkeys(("memory", "memstudio", "engine"), own),
            # Django's own handlers go to the mail and to a second console line: take them off.
            "django": {"level": "WARNING", "handlers": []},
            # What a client got wrong is in the answer, not in the log.
            "django.request": {"level": "ERROR", "handlers": []},
            # A wrong host name is one line: where it was noticed does not matter.
            "django.security.DisallowedHost": {"filters": ["no_traceback"]},
            # The jobs log their own end; Celery would log each a second time.
            "celery": {"level": "ERROR"},
            # What a client sends wrongly is in its answer.
            "mcp": {"level": "ERROR"},
            "kombu": {"level": "ERROR"},
            # A collector that is away is said now and then, not with every batch of spans.
            "opentelemetry": {"level": "ERROR"},
            COLLECTOR: {"level": "ERROR", "filters": ["seldom"]},
        },
    }


class Seldom(logging.Filter):
    """Lets one line of a logger through every ``pause_s`` seconds: it is always the same."""

    def __init__(self, pause_s: float = 300, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._pause_s = pause_s
        self._clock = clock
        self._until = float("-inf")

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether it is time for another line."""
        moment = self._clock()
        if moment < self._until:
            return False
        self._until = moment + self._pause_s
        return True


def _drop_traceback(record: logging.LogRecord) -> bool:
    record.exc_info = None
    return True
