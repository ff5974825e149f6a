"""What of a memory or card is indexed, and the text that is embedded.

``VERSION`` is part of every vector signature: change it whenever the output changes.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

VERSION: Final = "t1"

BOOKKEEPING: Final = frozenset(
    {
        "title",
        "speaker",
        "date",
        "source",
        "category",
        "extractedAt",
        "generatedAt",
        "summarizedCount",
        "olderThanDays",
        "importedFrom",
    }
)
"""Metadata that describes how a memory came about; indexing it would match every memory."""

_OPAQUE = re.compile(r"(?:[0-9a-f]{8,}|[0-9a-f-]{32,}|\d[\d:.\-tTzZ]*)", re.IGNORECASE)
_SEPARATORS = re.compile(r"[\s:/_\-.]+")


@dataclass(frozen=True, slots=True)
class IndexedText:
    """The three indexed fields of a whole memory, before it is cut into passages."""

    title: str
    body_prefix: str
    meta: str


def indexed_text(key: str, metadata: Mapping[str, object]) -> IndexedText:
    """The indexed fields around the content.

    The title is ``metadata.title`` where that is given (it may be empty), else the words of the
    key without ids and times. Speaker and date stand in front of the body, because questions
    name them ("what did Ana say in May?").
    """
    given = metadata.get("title")
    title = given if isinstance(given, str) else _words_of(key)
    return IndexedText(title.strip(), _spoken(metadata), " ".join(_searchable(metadata)))


def speaker_of(metadata: Mapping[str, object]) -> str:
    """Who said it, when the metadata tells; at most 100 characters."""
    speaker = metadata.get("speaker")
    return speaker.strip()[:100] if isinstance(speaker, str) else ""


def embedded_text(title: str, body: str) -> str:
    """The text that a passage's vector stands for."""
    return f"{title}\n{body}" if title else body


def text_hash(text: str) -> str:
    """SHA-256 of a text, in hexadecimal."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _words_of(key: str) -> str:
    words = (word for word in _SEPARATORS.split(key) if word)
    return " ".join(word for word in words if not _OPAQUE.fullmatch(word))


def _spoken(metadata: Mapping[str, object]) -> str:
    speaker, date = metadata.get("speaker"), metadata.get("date")
    if not isinstance(speaker, str) or not speaker.strip():
        return ""
    when = f" ({date.strip()})" if isinstance(date, str) and date.strip() else ""
    return f"{speaker.strip()}{when}: "


def _searchable(metadata: Mapping[str, object]) -> Iterator[str]:
    for name, value in metadata.items():
        if name in BOOKKEEPING:
            continue
        values = value if isinstance(value, list) else [value]
        yield from (item for item in values if isinstance(item, str))
