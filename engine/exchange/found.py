"""What a reader finds in a file: records, records that cannot be read, and what is left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from engine.errors import EngineError


class Unreadable(EngineError):
    """A file as a whole cannot be read.

    Codes: ``invalid_utf8``, ``invalid_archive``, ``archive_too_large``, ``nothing_to_import``.
    """

    code = "unreadable"


class Reason(StrEnum):
    """Why one record cannot be read."""

    NOT_JSON = "not_json"
    BROKEN = "broken"
    TOO_LONG = "too_long"
    NOT_A_CHAT = "not_a_chat"
    NOT_A_ROW = "not_a_row"
    NOT_UTF8 = "not_utf8"
    DAMAGED = "damaged"
    UNSAFE_NAME = "unsafe_name"
    NO_TEXT = "no_text"


class Unit(StrEnum):
    """What places are counted in."""

    RECORD = "record"
    LINE = "line"
    FILE = "file"


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands: the number of a record, line or file, from 1, and in an archive the
    name of the member."""

    number: int
    unit: Unit = Unit.RECORD
    file: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """One record, in the fields of our own export (``content``, ``key``, ``sessionId``, …)."""

    place: Place
    record: object


@dataclass(frozen=True, slots=True)
class Refused:
    """One record that cannot be read."""

    place: Place
    reason: Reason


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something of a file that is no memory by choice, such as a turn of the assistant."""

    place: Place


Item = Found | Refused | LeftOut


@dataclass(frozen=True, slots=True)
class Choices:
    """What of a file becomes memories; ``assistant``: turns of the assistant as well."""

    assistant: bool = False
    context: Mapping[str, str] = field(default_factory=dict)
