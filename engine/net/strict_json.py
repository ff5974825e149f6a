"""JSON as the standard has it: no NaN, no infinity, UTF-8 only."""

from __future__ import annotations

import json
import math
from typing import NoReturn

from engine.net.errors import HttpFailed

Json = bool | int | float | str | list["Json"] | dict[str, "Json"] | None


def parse(body: bytes) -> Json:
    """The value of a body. Raises ``HttpFailed`` (``invalid_response``)."""
    try:
        value: Json = json.loads(body.decode("utf-8"), parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError):
        raise HttpFailed("The answer is not valid JSON.", code="invalid_response") from None
    return value


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        _refuse(text)
    return number


def _refuse(text: str) -> NoReturn:
    raise ValueError(text)
