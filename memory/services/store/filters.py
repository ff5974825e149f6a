"""Filters over the values of items: ``{"status": "open", "score": {"$gte": 3}}``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import Q
from django.utils.translation import gettext as _

from memory.json_tests import JsonTest
from memory.services.metadata_filters import MAX_NAMES, Reader, is_name, joined, refused
from memory.services.store.places import Below

MEMBER: Final = "store"
MAX_TESTS: Final = 50
OPERATORS: Final = ("$eq", "$ne", "$gt", "$gte", "$lt", "$lte")


@dataclass(frozen=True, slots=True)
class Items:
    """Items below a namespace whose values a filter matches; with ``is_indexed``, those that a
    query may find. ``condition`` raises ``Invalid`` with the place that is wrong."""

    below: Below
    sent: Mapping[str, Any]
    is_indexed: bool = False

    def condition(self, of: str) -> Q:
        """The condition on memories (``of`` empty) or on what belongs to one."""
        made = self.below.condition(of)
        if self.sent:
            made &= _Reader(of).members([], self.sent, "filter")
        if self.is_indexed:
            made &= ~Q(JsonTest(f"{of}metadata", [MEMBER, "indexed"], "eq", False))
        return made


class _Reader(Reader):
    """Reads one filter; objects are matched member by member."""

    def __init__(self, of: str) -> None:
        super().__init__(f"{of}metadata", MAX_TESTS)

    def members(self, path: list[str], value: Mapping[str, Any], place: str) -> Q:
        """Members of an object, which must all match."""
        if len(path) > MAX_NAMES:
            raise refused(place, _("This is nested too deeply."))
        if not value:
            raise refused(place, _("A JSON object is needed."))
        return joined(
            Q.__and__,
            [
                self._member([*path, name], inner, f"{place}.{name}"[:200])
                for name, inner in value.items()
            ],
        )

    def _member(self, path: list[str], value: object, place: str) -> Q:
        if not path[-1] or not is_name(path[-1]):
            raise refused(place, _("This is not a path of names with dots between them."))
        if not isinstance(value, Mapping):
            return self._compared(path, "$eq", value, place)
        if not any(name.startswith("$") for name in value):
            return self.members(path, value, place)
        return joined(
            Q.__and__,
            [
                self._compared(path, name, inner, f"{place}.{name}"[:200])
                for name, inner in value.items()
            ],
        )

    def _compared(self, path: list[str], name: str, value: object, place: str) -> Q:
        if name not in OPERATORS:
            choices = ", ".join(OPERATORS)
            raise refused(place, _("One of: %(choices)s.") % {"choices": choices})
        whole = [MEMBER, "value", *path]
        if name == "$ne":
            return ~self.test(whole, "eq", value, place)
        return self.test(whole, name.removeprefix("$"), value, place)
