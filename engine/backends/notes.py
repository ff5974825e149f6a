"""A memory as a Markdown note: what only we know stands in the front matter, the rest is text.

Our own fields begin with ``memory-``; other fields of a note are left as they are. A note without
them is a memory as well: its name is the key.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from typing import Any, Final

import yaml

from engine.net.strict_json import Json
from engine.records import Changes, Draft, Record, to_moment, to_text

MAX_FRONT: Final = 128 * 1024
MOST_NUMBER: Final = 10**1000
"""Hexadecimal and base 60 make integers of more digits than Python writes."""
FRONT: Final = re.compile(
    r"\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE
)
PREFIX: Final = "memory-"
METADATA: Final = "memory-metadata"
_SCALARS: Final = (str, int, float, bool, type(None))


@dataclass(frozen=True, slots=True)
class Note:
    """The parts of a note: ``fields`` in front of the text (those of others too), and the text."""

    fields: Mapping[str, Any] = field(default_factory=dict)
    content: str = ""


class _PlainLoader(yaml.SafeLoader):
    """Safe YAML without aliases, which can grow without bound, and without endless numbers."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.events.AliasEvent):
            raise yaml.YAMLError("aliases are not read")
        return super().compose_node(parent, index)

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        number: int = super().construct_yaml_int(node)
        if abs(number) >= MOST_NUMBER:
            raise yaml.YAMLError("a number that Python does not write")
        return number


_PlainLoader.add_constructor("tag:yaml.org,2002:int", _PlainLoader.construct_yaml_int)


def parse(text: str) -> Note:
    """The parts of a file. Never fails: front matter that cannot be read is text."""
    match = FRONT.match(text)
    if match is None or len(match[1]) > MAX_FRONT:
        return Note(content=text)
    try:
        fields = yaml.load(match[1], Loader=_PlainLoader)  # noqa: S506 -- a safe loader
    except (yaml.YAMLError, ValueError, RecursionError, TypeError):
        return Note(content=text)
    if fields is None:
        fields = {}
    if not isinstance(fields, dict) or not all(isinstance(name, str) for name in fields):
        return Note(content=text)
    return Note(fields, text[match.end() :])


def dump(note: Note) -> str:
    """The file of a note. Values are JSON, which YAML readers understand.

    Metadata that YAML would read otherwise (a very long name, ``1e+22``) becomes a text of JSON.
    """
    fields = {name: plain(value) for name, value in note.fields.items()}
    text = _front(fields)
    if parse(text).fields != fields and METADATA in fields:
        text = _front({**fields, METADATA: json.dumps(fields[METADATA], ensure_ascii=False)})
    return text + note.content


def _front(fields: Mapping[str, Json]) -> str:
    lines = [f"{_name(name)}: {_json(value)}\n" for name, value in fields.items()]
    return f"---\n{''.join(lines)}---\n"


def of_draft(draft: Draft, moment: datetime) -> Note:
    """A new note."""
    fields: dict[str, Any] = {
        "memory-key": draft.key,
        "memory-type": draft.type,
        "memory-owner": draft.owner,
        "memory-session": draft.session,
        METADATA: dict(draft.metadata),
        "memory-created": to_text(moment),
        "memory-updated": to_text(moment),
        "memory-expires": to_text(draft.expires_at),
    }
    return Note(
        {name: value for name, value in fields.items() if value not in ("", {}, None)},
        draft.content,
    )


def changed(note: Note, changes: Changes, moment: datetime) -> Note:
    """A note after a change; fields of others stay."""
    fields = dict(note.fields)
    values: dict[str, Any] = dict(changes)
    content = values.pop("content", note.content)
    if "expires_at" in values:
        values["expires"] = to_text(values.pop("expires_at"))
    values["updated"] = to_text(moment)
    for name, value in values.items():
        if value in ("", {}, None):
            fields.pop(PREFIX + name, None)
        else:
            fields[PREFIX + name] = value
    return replace(note, fields=fields, content=content)


@dataclass(frozen=True, slots=True)
class Facts:
    """What a note itself may not tell: times of the file in seconds, and whose it is then."""

    created: float | None = None
    modified: float | None = None
    owner: str = ""


def to_record(path: str, note: Note, facts: Facts) -> Record:
    """The memory in a note."""
    fields = note.fields
    stem = path.removesuffix(".md")
    return Record(
        id=path,
        key=_text(fields, "memory-key") or stem,
        content=note.content,
        type=_text(fields, "memory-type") or "factual",
        owner=_text(fields, "memory-owner") or facts.owner,
        session=_text(fields, "memory-session"),
        metadata=_metadata(fields.get(METADATA)),
        created_at=to_moment(fields.get("memory-created")) or _moment(facts.created),
        updated_at=_latest(to_moment(fields.get("memory-updated")), _moment(facts.modified)),
        expires_at=to_moment(fields.get("memory-expires")),
    )


def _latest(said: datetime | None, found: datetime | None) -> datetime | None:
    """A note that someone edited by hand is as new as its file."""
    known = [moment for moment in (said, found) if moment is not None]
    return max(known) if known else None


def _moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def _text(fields: Mapping[str, Any], name: str) -> str:
    """A field as text: a hand-written ``memory-key: 42`` means the text "42"."""
    value = fields.get(name)
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def _metadata(value: Any) -> dict[str, Json]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {}
    if not isinstance(value, dict):
        return {}
    found = plain(value)
    return found if isinstance(found, dict) else {}


def plain(value: Any) -> Json:
    """YAML's values as those of JSON: dates become texts, and so do names."""
    if isinstance(value, dict):
        return {str(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    if isinstance(value, datetime | date):
        return value.isoformat()
    return value if isinstance(value, _SCALARS) else str(value)


def _name(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name) else json.dumps(name)


def _json(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return "".join(mark if mark.isprintable() else _escaped(mark) for mark in text)


def _escaped(mark: str) -> str:
    # YAML ends a line at U+0085, U+2028 and U+2029 and refuses others, which JSON lets stand.
    return f"\\u{ord(mark):04x}" if ord(mark) < 0x10000 else f"\\U{ord(mark):08x}"
