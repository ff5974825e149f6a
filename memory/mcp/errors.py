"""What went wrong, in plain words that a model can act on. Never a traceback, never a secret."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Final

from django.db import InterfaceError, OperationalError
from pydantic import ValidationError
from pydantic.alias_generators import to_camel

from engine.database import DatabaseFailed
from engine.errors import EngineError
from memory.errors import ServiceError, database_down, from_engine

logger = logging.getLogger("memory.mcp")

MOST_PROBLEMS: Final = 8
MAX_NAME: Final = 100


@dataclass(frozen=True, slots=True)
class Told:
    """An error as a client is told it: a stable code, and words."""

    code: str
    message: str


def told(error: Exception) -> Told:
    """The words for any failure of a call; one that nobody foresaw is logged."""
    if isinstance(error, ValidationError):
        return Told("invalid", safe(_problems(error)))
    if isinstance(error, EngineError):
        error = from_engine(error)
    elif isinstance(error, OperationalError | InterfaceError | DatabaseFailed):
        logger.error("the database failed: %s", type(error).__name__)
        error = database_down()
    if isinstance(error, ServiceError):
        return Told(error.code, safe(_with_fields(error)))
    logger.exception("a tool failed", exc_info=error)
    return Told("internal", "The studio could not do this; its log says why.")


def safe(text: str) -> str:
    """A text that can be sent: what a client sent may hold halves of characters."""
    return text.encode("utf-8", "replace").decode()


def _with_fields(error: ServiceError) -> str:
    details = [
        f"{to_camel(name)}: {text}" for name, text in error.fields.items() if text != error.message
    ]
    return " ".join([error.message, *details])


def _problems(error: ValidationError) -> str:
    problems = [
        f"{_place(item['loc'])}: {_reason(item['type'], item['msg'])}"
        for item in error.errors(include_url=False, include_context=False, include_input=False)
    ]
    more = len(problems) - MOST_PROBLEMS
    rest = [f"and {more} more"] if more > 0 else []
    return f"Arguments that cannot be used: {'; '.join([*problems[:MOST_PROBLEMS], *rest])}."


def _place(location: tuple[int | str, ...]) -> str:
    name = ".".join(str(part) for part in location[:3])
    return (name if len(name) <= MAX_NAME else f"{name[:MAX_NAME]}…") or "arguments"


def _reason(kind: str, message: str) -> str:
    if kind == "extra_forbidden":
        return "there is no such argument"
    if kind == "missing":
        return "this is needed"
    return message.removeprefix("Value error, ")
