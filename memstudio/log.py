"""The log: one line for each event on standard error, quiet unless something is wrong."""

from __future__ import annotations

import logging
from typing import Any


def config(level: str) -> dict[str, Any]:
    """Django's LOGGING. ``level`` holds for our own loggers; libraries speak from WARNING on."""
    own = {"level": level, "handlers": ["line"], "propagate": False}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"format": "{asctime} {levelname} {name}: {message}", "style": "{"}},
        "filters": {
            "no_traceback": {"()": "django.utils.log.CallbackFilter", "callback": _drop_traceback}
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
        },
    }


def _drop_traceback(record: logging.LogRecord) -> bool:
    record.exc_info = None
    return True
