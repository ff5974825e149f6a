"""One way into every file: what it is, and its items one after the other."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import IO, Final

from engine.exchange import archive, csv_rows, lines, markdown
from engine.exchange.archive import Member
from engine.exchange.counted import Counted
from engine.exchange.detect import HEAD_BYTES, Shape, dialect_of_head, shape_of
from engine.exchange.dialects import Dialect, reader
from engine.exchange.found import Choices, Found, Item, Place, Reason, Refused, Unit, Unreadable
from engine.exchange.json_stream import JsonStream, Value


class Format(StrEnum):
    """What a person calls a file. ``auto`` is told from its content."""

    AUTO = "auto"
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"
    MARKDOWN = "markdown"
    MEM0 = "mem0"
    OPENMEMORY = "openmemory"
    CHATGPT = "chatgpt"
    CLAUDE = "claude"
    MCP = "mcp"


SHAPES: Final = {
    Format.JSONL: Shape.LINES,
    Format.CSV: Shape.CSV,
    Format.MARKDOWN: Shape.MARKDOWN,
}
_DATA: Final = (".json", ".jsonl", ".ndjson", ".csv", ".jsonl.gz", ".json.gz")
_NOTES: Final = (".md", ".markdown")
_LOGICAL: Final = "memories.jsonl.gz"
_CHATS: Final = re.compile(
    r"(?:.*/)?(?:conversations(?:[-_ ]?\d+)?|conversations/[^/]+)\.json", re.IGNORECASE
)
BUFFER_BYTES: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class _Part:
    """One member with what it is."""

    member: Member
    number: int
    shape: Shape
    dialect: Dialect


class Reading:
    """A file that is being read: ``format`` is what it turned out to be.

    Raises ``Unreadable`` when the file as a whole cannot be read; so may going through it, where
    an archive turns out to be damaged or to grow beyond bounds.
    """

    def __init__(
        self, file: IO[bytes], name: str, *, wanted: Format = Format.AUTO, assistant: bool = False
    ) -> None:
        self._file = Counted(file)
        self._wanted = wanted
        self._choices = Choices(assistant=assistant)
        self._refused: list[Refused] = []
        found = archive.members(io.BufferedReader(self._file, BUFFER_BYTES), self._file.size)
        self._parts = self._chosen(found, name)
        self.format = _format(self._parts, wanted)

    @property
    def share(self) -> float:
        """How much of the file has been read, from 0 to 1; an estimate."""
        return min(1.0, self._file.taken / self._file.size) if self._file.size else 1.0

    def items(self) -> Iterator[Item]:
        """Everything in the file, in order."""
        yield from self._refused
        self._file.taken = 0
        for part in self._parts:
            try:
                yield from self._items_of(part)
            except archive.DAMAGES:
                yield Refused(Place(part.number, Unit.FILE, part.member.name), Reason.DAMAGED)

    def _chosen(self, found: list[Member], name: str) -> list[_Part]:
        if len(found) == 1 and not found[0].name:
            return [self._single(found[0], name)]
        parts: list[_Part] = []
        for number, member in enumerate(_to_read(found, self._wanted), start=1):
            place = Place(number, Unit.FILE, member.name)
            if not archive.is_safe(member.name):
                self._refused.append(Refused(place, Reason.UNSAFE_NAME))
                continue
            try:
                parts.append(self._part(member, number, member.name))
            except archive.DAMAGES:
                self._refused.append(Refused(place, Reason.DAMAGED))
            except Unreadable as error:
                if error.code != "invalid_utf8":
                    raise
                self._refused.append(Refused(place, Reason.NOT_UTF8))
        if not parts and not self._refused:
            raise Unreadable("There is nothing to import in it.", code="nothing_to_import")
        return parts

    def _single(self, member: Member, name: str) -> _Part:
        try:
            return self._part(member, 1, name)
        except archive.DAMAGES as error:
            raise Unreadable("The archive is damaged.", code="invalid_archive") from error

    def _part(self, member: Member, number: int, name: str) -> _Part:
        if member.name.casefold().endswith(_NOTES):
            return _Part(member, number, Shape.MARKDOWN, Dialect.OURS)
        head = member.open().read(HEAD_BYTES)
        shape = SHAPES.get(self._wanted) or shape_of(head, name.removesuffix(".gz"))
        dialect = Dialect.OURS
        if shape in (Shape.JSON, Shape.WHOLE, Shape.LINES):
            dialect = _dialect(self._wanted) or dialect_of_head(head, shape) or Dialect.OURS
        return _Part(member, number, shape, dialect)

    def _items_of(self, part: _Part) -> Iterator[Item]:
        file, name = part.member.open(), part.member.name
        if part.shape is Shape.MARKDOWN:
            yield _note(file, part)
        elif part.shape is Shape.CSV:
            yield from csv_rows.read(file, name)
        elif part.shape is Shape.LINES:
            yield from self._of_lines(file, part)
        else:
            stream = JsonStream(file)
            values = stream.whole() if part.shape is Shape.WHOLE else stream.values()
            yield from self._of_values(values, part)

    def _of_lines(self, file: IO[bytes], part: _Part) -> Iterator[Item]:
        read = reader(part.dialect)
        for found in lines.read(file, part.member.name):
            if isinstance(found, Refused):
                yield found
            else:
                yield from read("", found[1], found[0], self._choices)

    def _of_values(self, values: Iterator[Value], part: _Part) -> Iterator[Item]:
        read, number = reader(part.dialect), 0
        for value in values:
            number = value.number or number + 1
            place = Place(number, Unit.RECORD, part.member.name)
            if value.is_broken:
                yield Refused(place, Reason.TOO_LONG if value.is_too_long else Reason.BROKEN)
            else:
                yield from read(value.name, value.value, place, self._choices)


def _to_read(found: list[Member], wanted: Format) -> list[Member]:
    """The members that hold memories: of a chat export its chats and memories, and of a backup
    that tells everything twice the fuller one."""
    notes = [member for member in found if member.name.casefold().endswith(_NOTES)]
    data = [member for member in found if member.name.casefold().endswith(_DATA)]
    if wanted is Format.MARKDOWN:
        return notes
    chats = [member for member in data if _CHATS.fullmatch(member.name)]
    if chats:
        return [each for each in data if "memor" in each.name.casefold()] + chats
    logical = [member for member in data if _base(member) == _LOGICAL]
    if logical:
        return logical
    return data if wanted is not Format.AUTO else [*data, *notes]


def _base(member: Member) -> str:
    return member.name.rpartition("/")[2].casefold()


def _note(file: IO[bytes], part: _Part) -> Item:
    place = Place(part.number, Unit.FILE, part.member.name)
    data = file.read(markdown.MAX_NOTE + 1)
    if len(data) > markdown.MAX_NOTE:
        return Refused(place, Reason.TOO_LONG)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return Refused(place, Reason.NOT_UTF8)
    record = markdown.record_of(part.member.name, text)
    if not str(record["content"]).strip():
        return Refused(place, Reason.NO_TEXT)
    return Found(place, record)


def _dialect(wanted: Format) -> Dialect | None:
    if wanted in (Format.AUTO, Format.JSONL, Format.CSV, Format.MARKDOWN):
        return None
    return Dialect(wanted.value)


def _format(parts: list[_Part], wanted: Format) -> Format:
    if wanted is not Format.AUTO or not parts:
        return wanted
    first = parts[0]
    if first.dialect is not Dialect.OURS:
        return Format(first.dialect.value)
    return Format.JSON if first.shape is Shape.WHOLE else Format(first.shape.value)
