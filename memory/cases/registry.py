"""Adapters by area, and how an answer is compared with what a case expects."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

Case = Mapping[str, Any]
Answer = Any
Adapter = Callable[[Case, "CaseFile"], Answer]

_adapters: dict[str, Adapter] = {}
TOLERANCE: Final = 1e-6
REMARK: Final = re.compile(r"((?:ok|error)\b[^()]*?) \(.*\)", re.DOTALL)
"""A result word with a remark for people behind it."""


@dataclass(frozen=True, slots=True)
class CaseFile:
    """All cases of a file; some areas need another's (the corpus of ``match``)."""

    cases: list[dict[str, Any]]
    state: dict[str, Any] = field(default_factory=dict)

    def first(self, area: str) -> dict[str, Any]:
        """The first case of an area."""
        return next(case for case in self.cases if case["area"] == area)


def adapter(*areas: str) -> Callable[[Adapter], Adapter]:
    """Register a function for areas."""

    def register(function: Adapter) -> Adapter:
        for area in areas:
            _adapters[area] = function
        return function

    return register


def adapter_for(area: str) -> Adapter | None:
    """The adapter of an area, or None when it is not covered."""
    return _adapters.get(area)


def wanted(case: Case) -> Any:
    """What a case asks of us: ``ours`` where the first system is to be beaten."""
    return case["ours"] if case.get("verdict") == "beat" else case["expected"]


def agrees(want: Any, got: Any) -> bool:
    """Whether an answer is what was wanted.

    ``{min, max}`` is a range, numbers may differ by 1e-6, an object asks for its own fields only.
    A remark in brackets after ``ok …`` or ``error code`` is not compared.
    """
    if isinstance(want, dict) and set(want) == {"min", "max"} and isinstance(got, int | float):
        return bool(want["min"] <= got <= want["max"])
    if isinstance(want, bool) or isinstance(got, bool) or want is None or got is None:
        return want is got
    if isinstance(want, int | float) and isinstance(got, int | float):
        return math.isclose(want, got, abs_tol=TOLERANCE)
    if isinstance(want, dict) and isinstance(got, dict):
        if not want:
            return not got
        return all(key in got and agrees(value, got[key]) for key, value in want.items())
    if isinstance(want, list) and isinstance(got, list):
        return len(want) == len(got) and all(map(agrees, want, got))
    if isinstance(want, str) and isinstance(got, str):
        return _unremarked(want) == _unremarked(got)
    return bool(want == got)


def _unremarked(text: str) -> str:
    found = REMARK.fullmatch(text)
    return found[1] if found else text
