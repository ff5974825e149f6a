"""What crosses the seam ``MemoryBackend``: records, drafts, changes, filters and searches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, TypedDict

from engine.net.strict_json import Json

Metadata = Mapping[str, Json]
MAX_ID: Final = 600
"""Characters of an id that a backend gives; the longest path of a note that is kept."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A memory to be stored. ``owner`` is the public id of an API key; times are aware."""

    key: str
    content: str
    type: str = "factual"
    owner: str = ""
    session: str = ""
    metadata: Metadata = field(default_factory=dict)
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """A memory as a backend holds it. ``id`` is the backend's own.

    ``owner`` is empty where nobody is named; ``score`` is set by searches only.
    """

    id: str
    key: str
    content: str
    type: str = "factual"
    owner: str = ""
    session: str = ""
    metadata: Metadata = field(default_factory=dict)
    created_at: datetime | None = None
    updated_at: datetime | None = None
    expires_at: datetime | None = None
    score: float | None = None


class Changes(TypedDict, total=False):
    """Fields to change; the others stay. ``metadata`` is replaced as a whole."""

    key: str
    content: str
    type: str
    session: str
    metadata: Metadata
    expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class Filter:
    """Which records to list. Empty fields do not narrow; ``query`` is a plain piece of text."""

    owner: str = ""
    type: str = ""
    session: str = ""
    query: str = ""
    limit: int = 50
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Page:
    """Records of one page, newest first, with the number of all that match."""

    data: Sequence[Record]
    total: int
    by_type: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Search:
    """What to find. ``strategy``, ``max_tokens`` and ``options`` are for those that know them."""

    query: str
    owner: str = ""
    type: str = ""
    session: str = ""
    limit: int = 20
    strategy: str = ""
    max_tokens: int | None = None
    options: Mapping[str, Json] = field(default_factory=dict)


def page_of(records: Iterable[Record], wanted: Filter) -> Page:
    """One page of records that are all at hand: filtered, newest first, counted."""
    found = [record for record in records if matches(record, wanted)]
    found.sort(key=_age)
    by_type: dict[str, int] = {}
    for record in found:
        by_type[record.type] = by_type.get(record.type, 0) + 1
    return Page(found[wanted.offset : wanted.offset + wanted.limit], len(found), by_type)


def matches(record: Record, wanted: Filter) -> bool:
    """Whether a record is within a filter."""
    text = wanted.query.strip().casefold()
    return (
        (not wanted.owner or record.owner == wanted.owner)
        and (not wanted.type or record.type == wanted.type)
        and (not wanted.session or record.session == wanted.session)
        and (text in record.content.casefold() or text in record.key.casefold())
    )


def best_of(records: Iterable[Record], wanted: Search) -> list[tuple[float, Record]]:
    """The records that hold most of the words of a search, with that share, best first."""
    words = list(dict.fromkeys(wanted.query.casefold().split()))
    narrowed = Filter(owner=wanted.owner, type=wanted.type, session=wanted.session)
    found: list[tuple[float, Record]] = []
    for record in records:
        text = f"{record.key}\n{record.content}".casefold()
        held = sum(word in text for word in words)
        if held and matches(record, narrowed):
            found.append((held / len(words), record))
    found.sort(key=lambda item: (-item[0], *_age(item[1])))
    return found[: wanted.limit]


def _age(record: Record) -> tuple[float, str]:
    moment = record.created_at
    return (-moment.timestamp() if moment else 0.0, record.id)


def to_moment(value: object) -> datetime | None:
    """A time as ISO 8601 text or as a date of a YAML file; anything else is None."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            return None
    if not isinstance(value, datetime):
        return None
    try:
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).astimezone(UTC)
    except (OverflowError, ValueError):
        return None


def to_text(moment: datetime | None) -> str | None:
    """ISO 8601 in UTC with milliseconds and ``Z``, as the first seed writes times."""
    if moment is None:
        return None
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
