"""Nested filters over metadata: read, bounded, and made a condition of the database.

``{"AND": […], "OR": […], "NOT": …}`` nest; any other name is a dotted path of members, with a
scalar or with operators: ``{"project.stage": "beta", "score": {"gte": 3, "lt": 5}}``. Names beside
one another must all hold.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any, Final, Protocol, cast

from django.db.models import Q
from django.utils.translation import gettext as _

from memory.errors import Invalid
from memory.json_tests import JsonTest, Operator, Scalar
from memory.services.drafts import is_storable

MAX_DEPTH: Final = 5
MAX_TESTS: Final = 50
"""Comparisons of one filter; each value of an ``in`` is one."""
MAX_NAMES: Final = 8
MAX_TEXT: Final = 1000
MAX_NUMBER: Final = 2**53
"""Integers beyond it are not whole in every database."""
MAX_LENGTH: Final = 8000
"""Characters of a filter as JSON."""
GROUPS: Final = ("AND", "OR", "NOT")
OPERATORS: Final = ("eq", "ne", "in", "gt", "gte", "lt", "lte", "contains")
_ORDERED: Final = frozenset({"gt", "gte", "lt", "lte"})


class RowTest(Protocol):
    """A condition on memories that comes from elsewhere than a filter over metadata."""

    def condition(self, of: str) -> Q:
        """The condition on memories, or, with ``of`` ``memory__``, on what belongs to one."""
        ...


Filters = Mapping[str, Any] | RowTest


def parse(text: str) -> Mapping[str, Any] | None:
    """A filter from the JSON of a query string; None for an empty one. Raises ``Invalid``."""
    if not text.strip():
        return None
    if len(text) > MAX_LENGTH:
        raise refused("filters", _("At most %(count)s characters.") % {"count": MAX_LENGTH})
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise refused("filters", _("This is not plain JSON.")) from None
    if not isinstance(value, Mapping):
        raise refused("filters", _("A JSON object is needed."))
    return value


def refused(place: str, problem: str) -> Invalid:
    """What is told of a filter that cannot be carried out, and where it is wrong."""
    return Invalid(_("The filter is not valid."), code="invalid_filter", fields={place: problem})


def condition(filters: Filters, column: str = "metadata") -> Q:
    """The condition on a JSON column. Raises ``Invalid`` (``invalid_filter``) with the place."""
    if not isinstance(filters, Mapping):
        return filters.condition(column.removesuffix("metadata"))
    return Reader(column).group(filters, "filters", 1)


class Reader:
    """Reads one filter and counts its comparisons."""

    def __init__(self, column: str, most: int = MAX_TESTS) -> None:
        self._column = column
        self._most = most
        self._tests = 0

    def group(self, value: object, place: str, depth: int) -> Q:
        """Names beside one another, which must all hold."""
        if not isinstance(value, Mapping):
            raise refused(place, _("A JSON object is needed."))
        if depth > MAX_DEPTH:
            raise refused(place, _("This is nested too deeply."))
        made = Q()
        for name, inner in value.items():
            here = f"{place}.{name}"[:200]
            made &= (
                self._nested(name, inner, here, depth)
                if name in GROUPS
                else self.path(name, inner, here)
            )
        return made

    def _nested(self, name: str, value: object, place: str, depth: int) -> Q:
        listed = [value] if name == "NOT" and isinstance(value, Mapping) else value
        if not isinstance(listed, list) or not listed:
            raise refused(place, _("A list of filters is needed."))
        parts = [
            self.group(part, f"{place}.{number}", depth + 1) for number, part in enumerate(listed)
        ]
        if not all(parts):
            raise refused(place, _("A filter in a list cannot be empty."))
        if name == "AND":
            return joined(Q.__and__, parts)
        either = joined(Q.__or__, parts)
        return ~either if name == "NOT" else either

    def path(self, name: str, value: object, place: str) -> Q:
        """What a name that is no group asks of a memory."""
        path = name.split(".")
        if len(path) > MAX_NAMES or not all(path) or not is_name(name):
            raise refused(place, _("This is not a path of names with dots between them."))
        if not isinstance(value, Mapping):
            return self.test(path, "eq", value, place)
        if not value:
            raise refused(place, _("One of: %(choices)s.") % {"choices": ", ".join(OPERATORS)})
        return joined(
            Q.__and__,
            [self._operator(path, key, inner, f"{place}.{key}") for key, inner in value.items()],
        )

    def _operator(self, path: list[str], name: str, value: object, place: str) -> Q:
        if name not in OPERATORS:
            choices = ", ".join(OPERATORS)
            raise refused(place[:200], _("One of: %(choices)s.") % {"choices": choices})
        if name == "ne":
            return ~self.test(path, "eq", value, place)
        if name != "in":
            return self.test(path, name, value, place)
        if not isinstance(value, list) or not value:
            raise refused(place, _("A list of values is needed."))
        return joined(Q.__or__, [self.test(path, "eq", item, place) for item in value])

    def test(self, path: list[str], operator: str, value: object, place: str) -> Q:
        """One comparison of the value at a path of members."""
        self.count()
        if problem := _problem(operator, value):
            raise refused(place, problem)
        scalar = cast("Scalar", value)
        return Q(JsonTest(self._column, path, cast("Operator", operator), scalar))

    def count(self) -> None:
        """One comparison more. Raises ``Invalid`` when there are too many."""
        self._tests += 1
        if self._tests > self._most:
            problem = _("A filter has at most %(count)s comparisons.") % {"count": self._most}
            raise refused("filters", problem)


def joined(join: Callable[[Q, Q], Q], parts: list[Q]) -> Q:
    """Conditions as one."""
    return reduce(join, parts)


def is_name(name: str) -> bool:
    """Whether every SQLite finds members of this name: some read no quote or backslash in paths."""
    return len(name) <= MAX_TEXT and is_storable(name) and not set(name) & {'"', "\\"}


def _problem(operator: str, value: object) -> str:
    """Why a value cannot be compared so; an empty text when it can."""
    if isinstance(value, str):
        if len(value) > MAX_TEXT:
            return _("At most %(count)s characters.") % {"count": MAX_TEXT}
        return "" if is_storable(value) else _("This holds characters that are not valid text.")
    if value is None or isinstance(value, bool):
        if operator in _ORDERED or (operator == "contains" and value is None):
            return _("A text or a number is needed.")
        return ""
    if not isinstance(value, int | float):
        return _("A text, a number, true, false or null is needed.")
    is_known = isinstance(value, int) or math.isfinite(value)
    return "" if is_known and abs(value) <= MAX_NUMBER else _("This number is too large.")
