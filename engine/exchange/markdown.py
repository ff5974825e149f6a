"""Memories as Markdown files, one each: what only we know stands in the front matter.

The fields are those of notes in a vault (``engine.backends.notes``), so that an exported folder
can serve as one; a note without them is a memory as well, with its path as the key.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Mapping
from typing import Any, Final

from engine.backends import notes
from engine.backends.note_names import MAX_BYTES, MAX_NAME, RESERVED, SUFFIX, UNWANTED, folded

FIELDS: Final[Mapping[str, str]] = {
    "memory-key": "key",
    "memory-type": "type",
    "memory-session": "sessionId",
    "memory-owner-name": "apiKeyName",
    "memory-metadata": "metadata",
    "memory-created": "createdAt",
    "memory-updated": "updatedAt",
    "memory-expires": "expiresAt",
    "memory-occurred": "occurredAt",
    "memory-archived": "archivedAt",
    "memory-pinned": "pinned",
    "memory-shared": "shared",
}
"""Our fields in the front matter, and in a record."""
MAX_NOTE: Final = 1 << 22
"""Bytes of one file."""
MAX_FRONT: Final = 1 << 20
"""Characters of front matter that we wrote ourselves."""
_YAML_REFUSES: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""YAML ends lines at some of these, where JSON does not, and refuses the others."""
_LINE: Final = re.compile(r"(memory-[a-z-]+): (.*)")
_OWN: Final = frozenset((*FIELDS, "memory-owner", "memory-id"))


def record_of(path: str, text: str) -> dict[str, Any]:
    """The record in a file at a path. A note of others keeps its fields as metadata."""
    fields, content = _parts(text)
    record: dict[str, Any] = {"content": content}
    for name, ours in FIELDS.items():
        if fields.get(name) not in (None, ""):
            record[ours] = _plain(fields[name]) if ours != "metadata" else fields[name]
    others = {name: value for name, value in fields.items() if name not in _OWN}
    if others:
        metadata = record.get("metadata")
        known = metadata if isinstance(metadata, dict) else {}
        record["metadata"] = {**{name: notes.plain(others[name]) for name in others}, **known}
    if "key" not in record:
        record["key"] = path.removesuffix(SUFFIX)
    return record


def _parts(text: str) -> tuple[Mapping[str, Any], str]:
    """Front matter and text. What we wrote ourselves is JSON on each line: no YAML is needed."""
    match = notes.FRONT.match(text)
    if match is not None and len(match[1]) <= MAX_FRONT:
        fields = _own_fields(match[1])
        if fields is not None:
            return fields, text[match.end() :]
    note = notes.parse(text)
    return note.fields, note.content


def _own_fields(front: str) -> dict[str, Any] | None:
    fields: dict[str, Any] = {}
    for line in front.split("\n"):
        if not line:
            continue
        match = _LINE.fullmatch(line.rstrip("\r"))
        if match is None:
            return None
        try:
            fields[match[1]] = json.loads(match[2])
        except (ValueError, RecursionError):
            return None
    return fields


def _plain(value: Any) -> Any:
    """YAML reads a bare date as one; numbers are names here."""
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def text_of(record: Mapping[str, Any]) -> str:
    """The file of a record."""
    lines = [
        f"{name}: {_json(record[ours])}\n"
        for name, ours in FIELDS.items()
        if record.get(ours) not in (None, "", {}, False)
    ]
    return f"---\n{''.join(lines)}---\n{record['content']}"


def _json(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return _YAML_REFUSES.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class Names:
    """Paths for files, safe on every file system, none twice; a folder for each owner."""

    def __init__(self) -> None:
        self._taken: set[int] = set()
        self._folders: dict[str, str] = {}

    def path(self, owner: str, owner_name: str, key: str) -> str:
        """A path for the memory with this key of this owner."""
        if owner not in self._folders:
            self._folders[owner] = self._free("", _safe(owner_name))
        return self._free(self._folders[owner] + "/", _safe(key), SUFFIX)

    def _free(self, folder: str, base: str, suffix: str = "") -> str:
        twin = 1
        while True:
            name = f"{folder}{base}{f' {twin}' if twin > 1 else ''}{suffix}"
            # A number instead of the name: there may be very many.
            mark = int.from_bytes(hashlib.sha256(folded(name).encode()).digest()[:8])
            if mark not in self._taken:
                self._taken.add(mark)
                return name
            twin += 1


def _safe(name: str) -> str:
    base = UNWANTED.sub("-", unicodedata.normalize("NFC", name.encode("utf-8", "replace").decode()))
    base = "".join(mark if mark.isprintable() else " " for mark in base)
    base = " ".join(base.split()).strip(" .-") or "memory"
    base = base[:MAX_NAME].encode()[: MAX_BYTES - 40].decode("utf-8", "ignore").strip(" .")
    return f"_{base}" if RESERVED.fullmatch(base) else base
