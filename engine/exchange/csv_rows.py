"""CSV with a line of names: ours, a spreadsheet's, or another system's.

Cells that a spreadsheet would take for a formula are written behind an apostrophe, which our own
reader takes away again.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, Any, Final

from engine.exchange.found import Found, Item, Place, Reason, Refused, Unit

COLUMNS: Final = (
    "id",
    "apiKeyId",
    "apiKeyName",
    "sessionId",
    "type",
    "key",
    "content",
    "metadata",
    "createdAt",
    "updatedAt",
    "expiresAt",
    "occurredAt",
    "archivedAt",
    "pinned",
    "shared",
)
CONTENT: Final = ("content", "memory", "text", "fact")
MAX_FIELD: Final = 4_000_000
MAX_HEADER: Final = 1 << 16
_DELIMITERS: Final = (",", ";", "\t")
_FORMULA: Final = re.compile(r"'*(?:[\t\r\n]|\s*[=+\-@\uff1d\uff0b\uff0d\uff20])")
"""Also behind blanks and line breaks, and in full width: spreadsheets take these as well."""
_OURS: Final = frozenset(("apiKeyId", "apiKeyName", "key", "content", "pinned"))
_YES: Final = frozenset(("true", "1", "yes"))


def delimiter_of(header: str) -> str:
    """The delimiter under which a header has a column of texts; nothing when none does."""
    for mark in _DELIMITERS:
        names = _names(header, mark)
        if any(name.strip().casefold() in CONTENT for name in names):
            return mark
    return ""


def _names(header: str, mark: str) -> list[str]:
    if len(header) > MAX_HEADER:
        return []
    try:
        return next(csv.reader([header], delimiter=mark), [])
    except csv.Error:
        return []


def read(file: IO[bytes], name: str) -> Iterator[Item]:
    """Every row as a record. Unknown columns become metadata."""
    csv.field_size_limit(MAX_FIELD)
    text = io.TextIOWrapper(file, encoding="utf-8-sig", errors="surrogateescape", newline="")
    try:
        yield from _rows(text, name)
    finally:
        text.detach()


def _rows(text: io.TextIOWrapper, name: str) -> Iterator[Item]:
    header = text.readline()
    rows = csv.reader(text, delimiter=delimiter_of(header) or ",")
    names = _names(header, delimiter_of(header) or ",")
    columns = [_column(each) for each in names]
    are_ours = set(columns) >= _OURS
    while True:
        place = Place(rows.line_num + 2, Unit.LINE, name)
        try:
            row = next(rows, None)
        except csv.Error:
            yield Refused(place, Reason.NOT_A_ROW)
            continue
        if row is None:
            break
        if row:
            yield Found(place, _record(columns, row, are_ours))


def _column(name: str) -> str:
    bare = name.strip()
    known = {each.casefold(): each for each in COLUMNS}
    return known.get(bare.casefold().replace("_", ""), bare)


def _record(columns: list[str], row: list[str], are_ours: bool) -> dict[str, Any]:
    record: dict[str, Any] = {}
    others: dict[str, Any] = {}
    for name, cell in zip(columns, row, strict=False):
        value = _bare(cell) if are_ours else cell
        if name in ("pinned", "shared"):
            record[name] = value.strip().casefold() in _YES
        elif name in COLUMNS or name.casefold() in (*CONTENT, "owner", "session", "title"):
            record.setdefault(name if name in COLUMNS else name.casefold(), value)
        elif name and value:
            others[name] = value
    if "content" not in record:
        record["content"] = next((record[n] for n in CONTENT if record.get(n)), "")
    if others:
        record["metadata"] = {**others, **_object(record.get("metadata", ""))}
    return record


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def write(records: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Rows of records, behind a byte order mark, by which spreadsheets know UTF-8."""
    page = io.StringIO()
    rows = csv.writer(page)
    page.write("\ufeff")
    rows.writerow(COLUMNS)
    for record in records:
        rows.writerow([_cell(record.get(name)) for name in COLUMNS])
        if page.tell() > 1 << 16:
            yield _taken(page)
    yield _taken(page)


def _taken(page: io.StringIO) -> str:
    text = page.getvalue()
    page.seek(0)
    page.truncate()
    return text


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else str(value)
    return f"'{text}" if _FORMULA.match(text) else text


def _bare(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell
