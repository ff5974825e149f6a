"""The filters of mem0's clients, as conditions on memories.

Names are entities, times, texts, categories, feedback and whatever metadata has; ``AND``, ``OR``
and ``NOT`` nest. ``*`` is any value that is there. A date without a time is the whole day, UTC.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.db.models import F, Q, Value
from django.db.models.functions import Lower, StrIndex
from django.db.models.lookups import GreaterThan
from django.utils.translation import gettext as _

from memory.services.drafts import is_storable
from memory.services.mem0.entities import ANY, MEMBER, has_any, is_of
from memory.services.metadata_filters import (
    MAX_NAMES,
    MAX_TEXT,
    OPERATORS,
    Reader,
    is_name,
    joined,
    refused,
)

MAX_TESTS: Final = 200
ALL: Final = (*OPERATORS, "nin", "icontains")
_TIMES: Final = {"created_at": "created_at", "updated_at": "updated_at"}
_TEXTS: Final = {"memory": "content", "keywords": "content"}
_HELD: Final = frozenset({"user_id", "agent_id", "app_id", "feedback", "role", "immutable"})
_DAY: Final = timedelta(days=1)

UNREADABLE: Final = (TypeError, ValueError, OverflowError, OSError)
"""What a time that cannot be read raises."""

Test = Callable[[str, object], Q]


@dataclass(frozen=True, slots=True)
class Mem0Filter:
    """A filter as it was sent. ``condition`` raises ``Invalid`` with the place that is wrong."""

    sent: Mapping[str, Any]

    def condition(self, of: str) -> Q:
        """The condition on memories (``of`` empty) or on what belongs to one."""
        return _Reader(of).group(self.sent, "filters", 1)


class _Reader(Reader):
    """Reads one filter; names mean more than paths of metadata here."""

    def __init__(self, of: str) -> None:
        super().__init__(f"{of}metadata", MAX_TESTS)
        self._of = of

    def path(self, name: str, value: object, place: str) -> Q:
        """What a name asks of a memory."""
        if name == "metadata":
            return self._metadata([], value, place)
        if name in _HELD or name == "run_id":
            return self._asked(self._entity(name, place), value, place)
        if name in _TIMES or name == "expiration_date":
            return self._asked(self._time(name, place), value, place)
        if name in _TEXTS:
            return self._asked(self._text(_TEXTS[name], place), value, place)
        if name in ("id", "memory_id"):
            return self._asked(self._id(place), value, place)
        if name == "categories":
            return self._asked(self._category(place), value, place)
        return self._metadata(name.split("."), value, place)

    def _metadata(self, path: list[str], value: object, place: str) -> Q:
        """A value in metadata, or several of them in an object."""
        if len(path) > MAX_NAMES:
            raise refused(place, _("This is nested too deeply."))
        if not path or (isinstance(value, Mapping) and not set(value) <= set(ALL)):
            if not isinstance(value, Mapping) or not value:
                raise refused(place, _("A JSON object is needed."))
            parts = [
                self._metadata([*path, key], inner, f"{place}.{key}"[:200])
                for key, inner in value.items()
            ]
            return joined(Q.__and__, parts)
        if path[0] == MEMBER or not all(map(is_name, path)) or not all(path):
            raise refused(place, _("This is not a path of names with dots between them."))
        return self._asked(lambda name, given: self.test(path, name, given, place), value, place)

    def _asked(self, test: Test, value: object, place: str) -> Q:
        """A value that is wanted, or what operators ask."""
        if isinstance(value, list):
            value = {"in": value}
        if not isinstance(value, Mapping):
            return self._one(test, "eq", value, place)
        if not value:
            raise refused(place, _("One of: %(choices)s.") % {"choices": ", ".join(ALL)})
        return joined(
            Q.__and__,
            [
                self._one(test, name, inner, f"{place}.{name}"[:200])
                for name, inner in value.items()
            ],
        )

    def _one(self, test: Test, name: str, value: object, place: str) -> Q:
        if name not in ALL:
            raise refused(place, _("One of: %(choices)s.") % {"choices": ", ".join(ALL)})
        if name in ("ne", "nin"):
            return ~self._one(test, "eq" if name == "ne" else "in", value, place)
        if name == "in":
            if not isinstance(value, list) or not value:
                raise refused(place, _("A list of values is needed."))
            return joined(Q.__or__, [self._one(test, "eq", item, place) for item in value])
        if name == "eq" and value == ANY:
            return ~test("eq", None)
        return test(name, value)

    def _entity(self, name: str, place: str) -> Test:
        def test(operator: str, value: object) -> Q:
            if name != "run_id":
                return self.test([MEMBER, name], operator, value, place)
            self.count()
            if value is None:
                return ~has_any(self._of, name)
            if operator == "eq":
                return is_of(self._of, name, _text(value, place))
            return self._text("session_id", place)(operator, value)

        return test

    def _text(self, column: str, place: str) -> Test:
        def test(operator: str, value: object) -> Q:
            self.count()
            if value is None:
                return Q(**{f"{self._of}{column}": ""})
            text = _text(value, place)
            if operator == "eq":
                return Q(**{f"{self._of}{column}": text})
            if operator not in ("contains", "icontains"):
                raise refused(place, _("This cannot be compared so."))
            at, part = F(f"{self._of}{column}"), Value(text)
            if operator == "icontains":
                return Q(GreaterThan(StrIndex(Lower(at), Lower(part)), 0))
            return Q(GreaterThan(StrIndex(at, part), 0))

        return test

    def _category(self, place: str) -> Test:
        def test(operator: str, value: object) -> Q:
            named = "contains" if operator == "eq" and value is not None else operator
            return self.test([MEMBER, "categories"], named, value, place)

        return test

    def _id(self, place: str) -> Test:
        def test(operator: str, value: object) -> Q:
            if operator != "eq":
                raise refused(place, _("This cannot be compared so."))
            try:
                return Q(**{f"{self._of}pk": uuid.UUID(str(value))})
            except ValueError:
                return Q(**{f"{self._of}pk__in": []})

        return test

    def _time(self, name: str, place: str) -> Test:
        column = f"{self._of}{_TIMES.get(name, 'expires_at')}"
        # A memory that expires on a day is there to the end of it.
        later = _DAY if name == "expiration_date" else timedelta(0)

        def test(operator: str, value: object) -> Q:
            self.count()
            if value is None:
                return Q(**{f"{column}__isnull": True})
            try:
                start, end = (moment + later for moment in span_of(value))
            except UNREADABLE:
                raise refused(place, _("A date or a time is needed.")) from None
            if operator == "eq":
                return Q(**{f"{column}__gte": start, f"{column}__lt": end})
            if operator not in ("gt", "gte", "lt", "lte"):
                raise refused(place, _("This cannot be compared so."))
            edge = start if operator in ("gte", "lt") else end
            named = {"gt": "gte", "lte": "lt"}.get(operator, operator)
            return Q(**{f"{column}__{named}": edge})

        return test


def span_of(value: object) -> tuple[datetime, datetime]:
    """The time that a client names: a whole day, or one millisecond. Raises ``UNREADABLE``."""
    if isinstance(value, bool):
        raise TypeError("a date or a time is needed")
    if isinstance(value, int | float):
        moment = datetime.fromtimestamp(value, UTC)
        return moment, moment + timedelta(milliseconds=1)
    if not isinstance(value, str):
        raise TypeError("a date or a time is needed")
    moment = datetime.fromisoformat(value.strip())
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    is_day = len(value.strip()) <= len("2026-01-31")
    return moment, moment + (_DAY if is_day else timedelta(milliseconds=1))


def _text(value: object, place: str) -> str:
    if isinstance(value, str) and is_storable(value) and len(value) <= MAX_TEXT:
        return value
    raise refused(place, _("A text of at most %(count)s characters.") % {"count": MAX_TEXT})
