"""What a caller offers to be stored, and its validation. Raises ``Invalid`` with the fields."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from django.utils.translation import gettext as _

from engine.types import MemoryType
from memory.errors import Invalid
from memory.said import said

TYPES: Final = frozenset(kind.value for kind in MemoryType)
MAX_KEY: Final = 500
MAX_SESSION: Final = 200
MAX_CONTENT: Final = 200_000
MAX_METADATA: Final = 64_000
MAX_DEPTH: Final = 64
"""Levels of metadata; far below what the JSON functions of a database refuse."""


@dataclass(frozen=True, slots=True)
class MemoryDraft:
    """A memory as offered. ``created_at`` and ``archived_at`` are only given by imports."""

    content: str
    key: str
    type: str = "factual"
    session_id: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    expires_at: datetime | None = None
    occurred_at: datetime | None = None
    created_at: datetime | None = None
    archived_at: datetime | None = None
    is_pinned: bool = False
    is_shared: bool = False


def check(draft: MemoryDraft) -> None:
    """Raise ``Invalid`` naming every field that cannot be stored."""
    check_changes(
        {
            "content": draft.content,
            "key": draft.key,
            "type": draft.type,
            "session_id": draft.session_id,
            "metadata": draft.metadata,
            "expires_at": draft.expires_at,
            "occurred_at": draft.occurred_at,
            "created_at": draft.created_at,
            "archived_at": draft.archived_at,
        }
    )


def check_changes(changes: Mapping[str, Any]) -> None:
    """The same for some fields only, by their model names."""
    problems = {
        _API_NAMES.get(name, name): problem
        for name, value in changes.items()
        if (problem := _problem(name, value))
    }
    if problems:
        raise Invalid(_("Some fields cannot be stored."), fields=problems)


_API_NAMES: Final = {
    "session_id": "sessionId",
    "expires_at": "expiresAt",
    "occurred_at": "occurredAt",
    "created_at": "createdAt",
    "archived_at": "archivedAt",
}
_MOMENTS: Final = frozenset({"expires_at", "occurred_at", "created_at", "archived_at"})
_LONGEST: Final = {"key": MAX_KEY, "session_id": MAX_SESSION, "content": MAX_CONTENT}


def _problem(name: str, value: Any) -> str:
    if name == "type":
        return "" if value in TYPES else said("One of: %(types)s.", types=", ".join(MemoryType))
    if name == "metadata":
        return json_problem(value)
    if name in _MOMENTS:
        return "" if _is_moment(value) else _("This time is outside the calendar.")
    if name not in _LONGEST:
        return ""
    if name != "session_id" and not value.strip():
        return _("This cannot be empty.")
    if len(value) > _LONGEST[name]:
        return said("At most %(count)s characters.", count=_LONGEST[name])
    return "" if is_storable(value) else _("This holds characters that are not valid text.")


def _is_moment(value: datetime | None) -> bool:
    """Whether a time is the same moment in UTC, as databases keep it."""
    try:
        return value is None or bool(value.astimezone(UTC))
    except (OverflowError, ValueError):
        return False


def is_storable(text: str) -> bool:
    """Whether every database can hold a text: no NUL, no lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text


def json_problem(value: Any) -> str:
    """Why no database could hold a JSON object; an empty text when every one can."""
    if not isinstance(value, Mapping):
        return _("A JSON object is needed.")
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (ValueError, TypeError, RecursionError):
        return _("This is not plain JSON.")
    if _depth(value) > MAX_DEPTH:
        return _("This is nested too deeply.")
    if not is_storable(text) or "\\u0000" in text:
        return _("This holds characters that are not valid text.")
    if len(text) > MAX_METADATA:
        return said("At most %(count)s characters.", count=MAX_METADATA)
    return ""


def _depth(value: object) -> int:
    """Levels of lists and objects; counting stops above ``MAX_DEPTH``."""
    depth, level = 0, [value]
    while level and depth <= MAX_DEPTH:
        inner: list[object] = []
        for item in level:
            if isinstance(item, Mapping):
                inner.extend(item.values())
            elif isinstance(item, list | tuple):
                inner.extend(item)
        level, depth = inner, depth + 1
    return depth


def parse_metadata(raw: object) -> dict[str, Any]:
    """Metadata from stored or imported JSON text; anything but an object is an empty one."""
    if isinstance(raw, Mapping):
        return dict(raw)
    if not isinstance(raw, str):
        return {}
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
