"""What mem0's clients ask, in the words of the services."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from django.db.models import Q
from django.utils.translation import gettext as _

from memory.compat.mem0.schemas import Add, Change, Entities, List, Search
from memory.errors import Invalid
from memory.services.inference import Turn
from memory.services.mem0 import entities
from memory.services.mem0.adding import Offer
from memory.services.mem0.filters import UNREADABLE, Mem0Filter, span_of
from memory.services.metadata_filters import MAX_LENGTH, RowTest

_DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class All:
    """Several conditions that must all hold."""

    tests: Sequence[RowTest]

    def condition(self, of: str) -> Q:
        """The condition."""
        made = Q()
        for test in self.tests:
            made &= test.condition(of)
        return made


def offer(body: Add) -> Offer:
    """The messages that a body offers. Raises ``Invalid``."""
    given = {**(body.filters or {}), **named(body)}
    return Offer(
        turns=turns(body.messages),
        entities=entities.required(given),
        metadata=body.metadata or {},
        infer=body.infer is not False,
        is_immutable=body.immutable is True,
        expires_at=end_of(body.expiration_date),
        occurred_at=moment("timestamp", body.timestamp),
    )


def named(body: Entities) -> dict[str, Any]:
    """The entities that a body names at its top level."""
    given = {name: getattr(body, name) for name in entities.NAMES}
    return {name: value for name, value in given.items() if value is not None}


def turns(messages: list[dict[str, Any]] | dict[str, Any] | str) -> list[Turn]:
    """Messages as turns; of messages in parts only the texts. Raises ``Invalid``."""
    if isinstance(messages, str):
        messages = {"role": "user", "content": messages}
    listed = [messages] if isinstance(messages, Mapping) else messages
    return [_turn(number, message) for number, message in enumerate(listed)]


def _turn(number: int, message: Mapping[str, Any]) -> Turn:
    role, name = message.get("role", "user"), message.get("name")
    if not isinstance(role, str) or len(role) > 40:
        raise Invalid(_("The role of a message is a text."), fields={f"messages.{number}.role": ""})
    return Turn(role, _content(message.get("content")), name if isinstance(name, str) else "")


def _content(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [content]
    texts = [part.get("text") for part in parts if isinstance(part, Mapping)]
    return "\n".join(text for text in texts if isinstance(text, str))


def picked(body: Search | List, given: Mapping[str, Any] | None) -> RowTest:
    """The memories that a body asks for. Raises ``Invalid`` without a filter."""
    if not given:
        message = _("A filter is needed, such as {“user_id”: “alice”}.")
        raise Invalid(message, fields={"filters": message})
    tests = [Mem0Filter(given)]
    if body.categories:
        tests.append(Mem0Filter({"categories": {"in": body.categories}}))
    if isinstance(body, Search) and body.metadata:
        tests.append(Mem0Filter({"metadata": body.metadata}))
    if isinstance(body, List) and body.keywords:
        tests.append(Mem0Filter({"keywords": {"icontains": body.keywords}}))
    return All(tests)


def entities_in(query: Mapping[str, str]) -> dict[str, str]:
    """The entities of a query string. Raises ``Invalid`` for what cannot be read as such."""
    given: dict[str, object] = dict(query)
    if sent := query.get("filters"):
        read = _read(sent)
        if set(read) - set(entities.NAMES):
            message = _("Here a filter names entities only.")
            raise Invalid(message, fields={"filters": message})
        given |= read
    return entities.checked(given)


def _read(text: str) -> Mapping[str, object]:
    """An object in a query string: JSON, or as Python's client writes a dict."""
    for reader in (json.loads, ast.literal_eval):
        try:
            value = reader(text) if len(text) <= MAX_LENGTH else None
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(value, Mapping) and value:
            return value
    raise Invalid(_("This is not plain JSON."), fields={"filters": _("This is not plain JSON.")})


def changes(body: Change) -> dict[str, Any]:
    """The fields that a body changes, by their model names. Raises ``Invalid`` for none."""
    sent: dict[str, Any] = {}
    if body.text is not None:
        sent["content"] = body.text
    if body.metadata is not None:
        sent["metadata"] = body.metadata
    if body.timestamp is not None:
        sent["occurred_at"] = moment("timestamp", body.timestamp)
    if "expiration_date" in body.model_fields_set:
        sent["expires_at"] = end_of(body.expiration_date)
    if not sent:
        raise Invalid(_("There is nothing to change."))
    return sent


def end_of(day: str | None) -> datetime | None:
    """The moment at which a memory with this last day expires."""
    if day is None:
        return None
    try:
        last = date.fromisoformat(day.strip()[:10]) + _DAY
    except (ValueError, OverflowError):
        message = _("A date is needed, such as 2027-01-31.")
        raise Invalid(message, fields={"expiration_date": message}) from None
    return datetime(last.year, last.month, last.day, tzinfo=UTC)


def moment(name: str, value: object, *, is_end: bool = False) -> datetime | None:
    """A time as clients write it; ``is_end`` is the end of the day that is named."""
    if value is None or value == "":
        return None
    try:
        if isinstance(value, str) and value.strip().replace(".", "", 1).isdecimal():
            value = float(value)
        return span_of(value)[is_end]
    except UNREADABLE:
        message = _("A date or a time is needed.")
        raise Invalid(message, fields={name: message}) from None
