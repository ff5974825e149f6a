"""What a file is, told from how it begins, never from what it is called alone."""

from __future__ import annotations

import codecs
import io
import json
from enum import StrEnum
from typing import Any, Final

from engine.exchange.csv_rows import delimiter_of
from engine.exchange.dialects import GRAPH, LISTS, Dialect, dialect_of
from engine.exchange.found import Unreadable
from engine.exchange.json_stream import JsonStream

HEAD_BYTES: Final = 1 << 20
"""So much of a file tells what it is; the first conversation of a chat may be long."""
_RECORDS: Final = (LISTS | GRAPH) - {""}


class Shape(StrEnum):
    """How records follow one another."""

    JSON = "json"
    WHOLE = "whole"
    LINES = "jsonl"
    CSV = "csv"
    MARKDOWN = "markdown"


def shape_of(head: bytes, name: str) -> Shape:
    """The shape of a file from its beginning. Raises ``Unreadable`` for what is no text."""
    text = _decoded(head)
    bare = text.lstrip()
    if bare.startswith(("[", "{")):
        return _json_shape(bare)
    if name.casefold().endswith((".md", ".markdown")) or text.startswith("---\n"):
        return Shape.MARKDOWN
    header = text.partition("\n")[0]
    if delimiter_of(header) or name.casefold().endswith(".csv"):
        return Shape.CSV
    return Shape.LINES


def _decoded(head: bytes) -> str:
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    try:
        return decoder.decode(head)
    except UnicodeDecodeError:
        raise Unreadable("The file is not UTF-8 text.", code="invalid_utf8") from None


def _json_shape(text: str) -> Shape:
    first, _break, rest = text.partition("\n")
    if rest.strip() and _is_json(first):
        return Shape.LINES
    if text.startswith("["):
        return Shape.JSON
    stream = JsonStream(io.BytesIO(text.encode("utf-8", "surrogateescape")))
    is_broken = False
    for value in stream.values():
        is_broken = is_broken or value.is_broken
        if stream.lists & _RECORDS:
            break
    if is_broken and (any(map(_is_record, rest.split("\n"))) or not _begins_object(text)):
        return Shape.LINES
    return Shape.JSON if stream.lists & _RECORDS else Shape.WHOLE


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _is_record(line: str) -> bool:
    """Whether a line is a record by itself; those inside of a document end in a comma."""
    return line.lstrip().startswith("{") and len(line) > len("{}") and _is_json(line)


def _begins_object(text: str) -> bool:
    return text[1:].lstrip().startswith(('"', "}"))


def dialect_of_head(head: bytes, shape: Shape) -> Dialect | None:
    """Whose words the first record is in."""
    if shape is Shape.LINES:
        for line in head.split(b"\n"):
            found = dialect_of(_loaded(line))
            if found is not None:
                return found
        return None
    stream = JsonStream(io.BytesIO(head))
    names: set[str] = set()
    for value in stream.whole() if shape is Shape.WHOLE else stream.values():
        names.add(value.name)
        if value.name in LISTS or value.name in GRAPH:
            found = dialect_of(value.value, value.name)
            if found is not None:
                return _openmemory(names) or _mem0(value.name, found)
    return _of_cut_head(head)


def _openmemory(names: set[str]) -> Dialect | None:
    return Dialect.OPENMEMORY if {"user", "apps"} & names and "memories" in names else None


def _mem0(name: str, found: Dialect) -> Dialect:
    return Dialect.MEM0 if name == "results" and found is Dialect.OURS else found


def _of_cut_head(head: bytes) -> Dialect | None:
    """Of a first record so long that its end was not seen."""
    for mark, dialect in (
        (b'"mapping"', Dialect.CHATGPT),
        (b'"chat_messages"', Dialect.CLAUDE),
        (b'"conversations_memory"', Dialect.CLAUDE),
    ):
        if mark in head:
            return dialect
    return None


def _loaded(line: bytes) -> Any:
    try:
        return json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None
