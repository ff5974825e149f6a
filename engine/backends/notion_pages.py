"""Memories as properties of Notion pages, and back."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from engine.errors import BackendFailed
from engine.net.strict_json import Json
from engine.records import Changes, Draft, Record, to_moment, to_text

PIECE: Final = 2000
PIECES: Final = 100
MAX_WORDS: Final = 20
ID: Final = re.compile(r"[0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
TYPES: Final[Mapping[str, str]] = {
    "key": "title",
    "content": "rich_text",
    "type": "select",
    "owner": "rich_text",
    "session": "rich_text",
    "metadata": "rich_text",
    "expires": "date",
}


@dataclass(frozen=True, slots=True)
class Names:
    """What the properties are called in the database."""

    key: str = "Name"
    content: str = "Content"
    type: str = "Type"
    owner: str = "Owner"
    session: str = "Session"
    metadata: str = "Metadata"
    expires: str = "Expires"

    def named(self) -> dict[str, str]:
        """Field to property."""
        return {name: getattr(self, name) for name in TYPES}


def of_draft(draft: Draft, names: Names) -> dict[str, object]:
    """The properties of a new page."""
    values = {
        "key": draft.key,
        "content": draft.content,
        "type": draft.type,
        "owner": draft.owner,
        "session": draft.session,
        "metadata": _json(draft.metadata),
        "expires": draft.expires_at,
    }
    return _properties(values, names)


def of_changes(changes: Changes, names: Names) -> dict[str, object]:
    """The properties that a change sets."""
    values: dict[str, object] = dict(changes)
    if "metadata" in changes:
        values["metadata"] = _json(changes["metadata"])
    if "expires_at" in changes:
        del values["expires_at"]
        values["expires"] = changes["expires_at"]
    return _properties(values, names)


def to_record(page: Json, names: Names) -> Record | None:
    """The memory of a page; None for one in the trash, or that is no page."""
    if not isinstance(page, dict) or page.get("archived") or page.get("in_trash"):
        return None
    page_id, properties = page.get("id"), page.get("properties")
    if not isinstance(page_id, str) or not isinstance(properties, dict):
        return None
    values = {name: _value(properties.get(prop)) for name, prop in names.named().items()}
    metadata = _object(values["metadata"])
    return Record(
        id=page_id,
        key=values["key"] or page_id,
        content=values["content"],
        type=values["type"] or "factual",
        owner=values["owner"],
        session=values["session"],
        metadata=metadata,
        created_at=to_moment(page.get("created_time")),
        updated_at=to_moment(page.get("last_edited_time")),
        expires_at=to_moment(values["expires"]),
    )


def owned(owner: str, names: Names, *, with_nobody: bool) -> dict[str, object]:
    """The condition that a page is an owner's, or also that it names nobody."""
    own: dict[str, object] = {"property": names.owner, "rich_text": {"equals": owner}}
    nobody = {"property": names.owner, "rich_text": {"is_empty": True}}
    return {"or": [own, nobody]} if with_nobody else own


def narrowed(kind: str, session: str, names: Names) -> list[dict[str, object]]:
    """Conditions on type and session."""
    rule: list[dict[str, object]] = []
    if kind:
        rule.append({"property": names.type, "select": {"equals": kind}})
    if session:
        rule.append({"property": names.session, "rich_text": {"equals": session}})
    return rule


def holding(words: list[str], names: Names) -> dict[str, object]:
    """The condition that a page holds one of the words."""
    return {
        "or": [
            {"property": prop, kind: {"contains": word[:PIECE]}}
            for word in words
            for prop, kind in ((names.content, "rich_text"), (names.key, "title"))
        ]
    }


def missing(database: Json, names: Names) -> list[str]:
    """Properties that a database lacks, or has of another type."""
    properties = database.get("properties") if isinstance(database, dict) else None
    known = properties if isinstance(properties, dict) else {}
    lacking = []
    for name, prop in names.named().items():
        found = known.get(prop)
        if not isinstance(found, dict) or found.get("type") != TYPES[name]:
            lacking.append(f"{prop} ({TYPES[name]})")
    return lacking


def title_of(database: Json) -> str:
    """What a database is called."""
    return _plain(database.get("title")) if isinstance(database, dict) else ""


def parent_of(page: Json) -> str:
    """The database of a page, without dashes."""
    parent = page.get("parent") if isinstance(page, dict) else None
    found = parent.get("database_id") if isinstance(parent, dict) else None
    return bare(found) if isinstance(found, str) else ""


def bare(notion_id: str) -> str:
    """An id without its dashes, as addresses in the browser have it."""
    return notion_id.replace("-", "").lower()


def is_id(text: str) -> bool:
    """Whether a text can be the id of a page or database."""
    return ID.fullmatch(text) is not None


def _properties(values: Mapping[str, object], names: Names) -> dict[str, object]:
    named = names.named()
    return {named[name]: _property(TYPES[name], value) for name, value in values.items()}


def _property(kind: str, value: object) -> dict[str, object]:
    if kind == "select":
        return {"select": {"name": value} if value else None}
    if kind == "date":
        start = to_text(value) if isinstance(value, datetime) else None
        return {"date": {"start": start} if start else None}
    return {kind: [{"type": "text", "text": {"content": piece}} for piece in _cut(str(value))]}


def _cut(text: str) -> list[str]:
    """Pieces of at most 2,000 UTF-16 units, the measure of Notion. Raises ``BackendFailed``."""
    pieces, start, size = [], 0, 0
    for at, mark in enumerate(text):
        units = 1 + (ord(mark) > 0xFFFF)
        if size + units > PIECE:
            pieces.append(text[start:at])
            start, size = at, 0
        size += units
    if size:
        pieces.append(text[start:])
    if len(pieces) > PIECES:
        raise BackendFailed("The text is longer than Notion keeps.", code="too_large")
    return pieces


def _value(prop: Any) -> str:
    """The text of a property of any of our types."""
    if not isinstance(prop, dict):
        return ""
    kind = prop.get("type")
    held = prop.get(kind) if isinstance(kind, str) else None
    if isinstance(held, list):
        return _plain(held)
    if isinstance(held, dict):
        return str(held.get("name") or held.get("start") or "")
    return ""


def _plain(pieces: Any) -> str:
    listed = pieces if isinstance(pieces, list) else []
    texts = (piece.get("plain_text") for piece in listed if isinstance(piece, dict))
    return "".join(text for text in texts if isinstance(text, str))


def _json(metadata: Mapping[str, Json]) -> str:
    return json.dumps(dict(metadata), ensure_ascii=False) if metadata else ""


def _object(text: str) -> dict[str, Json]:
    try:
        value = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
