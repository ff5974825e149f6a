"""Exports in every format, row by row: however many there are, only a page is in memory."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain
from typing import Any, Final

from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from engine.exchange import csv_rows, markdown, zip_writer
from memory.clock import iso, now
from memory.errors import Invalid
from memory.models import Memory
from memory.principal import Principal
from memory.services import access, audit, listing
from memory.services.exchange import memory_json
from memory.services.listing import MemoryFilter

FORMAT: Final = "memory-studio"
PAGE: Final = 500
EVERYTHING: Final = MemoryFilter(state="kept")
_MOMENTS: Final[Mapping[str, str]] = {
    "createdAt": "created_at",
    "updatedAt": "updated_at",
    "expiresAt": "expires_at",
    "occurredAt": "occurred_at",
    "archivedAt": "archived_at",
}

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Export:
    """A file on its way out: what it is, what it may be called, and its bytes in pieces."""

    content_type: str
    file_name: str
    pieces: Iterator[bytes]


def export(principal: Principal, kind: str = "json", wanted: MemoryFilter = EVERYTHING) -> Export:
    """The memories that a filter matches, of whatever page, as a file: live and archived ones of
    the caller's owners unless it says otherwise. Raises ``Invalid`` for an unknown format."""
    if kind not in _WRITERS:
        message = _("One of: %(choices)s.") % {"choices": ", ".join(_WRITERS)}
        raise Invalid(message, fields={"format": message})
    rows = listing.selected(principal, replace(wanted, limit=1, page=1, offset=None))
    owner = access.read_owner(principal, wanted.owner)
    audit.record(principal, "memory.export", owner=owner, detail={"format": kind})
    content_type, ending, write = _WRITERS[kind]
    stamp = (iso(now()) or "").replace(":", "-")
    return Export(content_type, f"memory-export-{stamp}{ending}", write(_records(rows)))


def export_all(principal: Principal, owner: str | None = None) -> Iterator[bytes]:
    """Every live and archived memory as one JSON document, in pieces."""
    return export(principal, "json", replace(EVERYTHING, owner=owner)).pieces


def _records(rows: QuerySet[Memory]) -> Iterator[Record]:
    """Rows oldest first. Each page is a query of its own: a slow reader holds nothing open."""
    ordered, last = rows.order_by("created_at", "pk"), None
    while True:
        page = ordered
        if last is not None:
            later = Q(created_at__gt=last.created_at) | Q(pk__gt=last.pk)
            page = page.filter(later, created_at__gte=last.created_at)
        found = list(page[:PAGE])
        yield from map(_record, found)
        if len(found) < PAGE:
            return
        last = found[-1]


def _record(memory: Memory) -> Record:
    """As REST shows it, with times as exact as they are."""
    exact = {name: _exact(getattr(memory, attribute)) for name, attribute in _MOMENTS.items()}
    return {**memory_json(memory), **exact}


def _exact(moment: datetime | None) -> str | None:
    if moment is None or moment.microsecond % 1000 == 0:
        return iso(moment)
    text = moment.astimezone(UTC).isoformat(timespec="microseconds")
    return text.replace("+00:00", "Z")


def _json(records: Iterator[Record]) -> Iterator[bytes]:
    head = {"format": FORMAT, "version": 1, "exportedAt": iso(now())}
    start = json.dumps(head)[:-1] + ', "memories": ['
    lines = (json.dumps(record, ensure_ascii=False) for record in records)
    return _joined(chain([start], _separated(lines), ["\n]}\n"]))


def _separated(lines: Iterable[str]) -> Iterator[str]:
    separator = "\n"
    for line in lines:
        yield separator + line
        separator = ",\n"


def _jsonl(records: Iterator[Record]) -> Iterator[bytes]:
    return _joined(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def _csv(records: Iterator[Record]) -> Iterator[bytes]:
    return _joined(csv_rows.write(records))


def _joined(texts: Iterable[str]) -> Iterator[bytes]:
    """Texts in pieces that are worth sending."""
    pieces: list[str] = []
    size = 0
    for text in texts:
        pieces.append(text)
        size += len(text)
        if size > 1 << 16:
            yield "".join(pieces).encode()
            pieces, size = [], 0
    yield "".join(pieces).encode()


def _markdown(records: Iterator[Record]) -> Iterator[bytes]:
    """A zip archive with a file for each memory, in a folder for each owner."""
    names = markdown.Names()
    return zip_writer.write(
        (
            names.path(record["apiKeyId"], record["apiKeyName"], record["key"]),
            datetime.fromisoformat(record["createdAt"]),
            markdown.text_of(record).encode(),
        )
        for record in records
    )


_WRITERS: Final = {
    "json": ("application/json; charset=utf-8", ".json", _json),
    "jsonl": ("application/x-ndjson; charset=utf-8", ".jsonl", _jsonl),
    "csv": ("text/csv; charset=utf-8", ".csv", _csv),
    "markdown": ("application/zip", ".zip", _markdown),
}
EXPORT_FORMATS: Final = tuple(_WRITERS)
