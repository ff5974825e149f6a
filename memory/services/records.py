"""One record of an import file to a draft: our own export, the first seed's, and the common
format of evaluation sets (``id, title, text, owner, session, date, speaker, raw``)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from dateutil import parser as dates
from django.utils.translation import gettext as _

from memory.errors import Invalid
from memory.services import access, keys
from memory.services.drafts import MAX_KEY, TYPES, MemoryDraft, check, parse_metadata

_ISO: Final = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d:\d\d(?:\.(?:\d{3}|\d{6}))?(?:Z|[+-]\d\d:\d\d)?)?", re.ASCII
)
MOST_SECONDS: Final = 10**11
_DESCRIBING: Final = ("title", "speaker", "date")


def owner_of(record: Mapping[str, Any]) -> str | None:
    """The name of the owner a record names, or None. Raises ``Invalid`` when no key can have it."""
    named = access.reference_of(record.get("apiKeyName")) or access.reference_of(
        record.get("owner")
    )
    if named is not None:
        keys.check_name(named)
    return named


def draft_of(record: object) -> MemoryDraft:
    """The draft of a record. Raises ``Invalid`` when it holds no text or cannot be stored.

    An unknown type counts as ``factual``, as the first seed's import does; a record without a
    key gets one from its text, so that importing a file twice stores nothing twice.
    """
    if not isinstance(record, Mapping):
        raise Invalid(_("A JSON object is needed."))
    # What was said without its speaker goes with the speaker as a field of its own.
    spoken = ("raw",) if _first_text(record, "speaker") else ()
    content = _first_text(record, "content", *spoken, "text", "raw")
    if not content.strip():
        raise Invalid(_("There is no text in it."))
    kind = record.get("type")
    draft = MemoryDraft(
        content=content,
        key=_key(record, content),
        type=kind if isinstance(kind, str) and kind in TYPES else "factual",
        session_id=_session(record),
        metadata=_metadata(record),
        expires_at=_moment(record.get("expiresAt")),
        occurred_at=_moment(record.get("occurredAt") or record.get("date")),
        created_at=_moment(record.get("createdAt")),
        archived_at=_moment(record.get("archivedAt")),
        is_pinned=record.get("pinned") is True,
        is_shared=record.get("shared") is True,
    )
    check(draft)
    return draft


def _first_text(record: Mapping[str, Any], *names: str) -> str:
    for name in names:
        value = record.get(name)
        if isinstance(value, str) and value.strip():
            return value
    return ""


def _key(record: Mapping[str, Any], content: str) -> str:
    for name in ("key", "id"):
        value = record.get(name)
        if isinstance(value, str | int) and str(value).strip():
            return str(value).strip()[:MAX_KEY]
    digest = hashlib.sha256(content.encode("utf-8", "replace")).hexdigest()
    return f"import:{digest[:16]}"


def _session(record: Mapping[str, Any]) -> str:
    for name in ("sessionId", "session"):
        value = record.get(name)
        if isinstance(value, str | int) and not isinstance(value, bool):
            return str(value)
    return ""


def _metadata(record: Mapping[str, Any]) -> dict[str, Any]:
    metadata = parse_metadata(record.get("metadata"))
    for name in _DESCRIBING:
        value = record.get(name)
        if isinstance(value, str):
            metadata[name] = value
    return metadata


def _moment(value: object) -> datetime | None:
    """A time as written by people or programs; None when it cannot be read as one."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _of_epoch(value)
    if not isinstance(value, str) or not value.strip():
        return None
    try:
        moment = _parsed(value)
        # The parser takes offsets of days, over which only the first use stumbles.
        return moment if moment.utcoffset() is not None else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def _of_epoch(value: float) -> datetime | None:
    """Seconds since 1970, or milliseconds where those would be thousands of years."""
    try:
        return datetime.fromtimestamp(value / 1000 if abs(value) > MOST_SECONDS else value, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _parsed(text: str) -> datetime:
    """A time in whatever form. What every export writes is read without guessing: 40 times faster.

    Raises ``ValueError`` or ``OverflowError``.
    """
    if _ISO.fullmatch(text):
        return datetime.fromisoformat(text)
    moment: datetime = dates.parse(text)
    return moment
