"""What a request says of itself: its session, and whether it wants no memory."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

NO_MEMORY_HEADERS: Final = ("x-omniroute-no-memory", "x-memory-opt-out")
SESSION_HEADER: Final = "x-session-id"
MAX_SESSION: Final = 200
_YES: Final = frozenset({"true", "1", "yes"})
_METADATA: Final = (
    "session_id",
    "sessionId",
    "conversation_id",
    "conversationId",
    "thread_id",
    "threadId",
    "chat_id",
    "user_id",
    "userId",
)


def wants_no_memory(headers: Mapping[str, object] | None) -> bool:
    """Whether a header asks for a chat without memory: ``true``, ``1`` or ``yes``."""
    for name, value in (headers or {}).items():
        if name.lower() in NO_MEMORY_HEADERS and not _YES.isdisjoint(_said(value)):
            return True
    return False


def _said(value: object) -> set[str]:
    """The values of a header, which may stand there more than once."""
    return {one.strip().lower() for one in str(value).split(",")}


def session_of(headers: Mapping[str, str], body: Mapping[str, object]) -> str:
    """The session of a request, empty when it names none. Names of ``headers`` in lower case.

    The header comes first, then the body's metadata, its conversation and its user.
    """
    metadata = body.get("metadata")
    named = metadata if isinstance(metadata, Mapping) else {}
    conversation = body.get("conversation")
    if isinstance(conversation, Mapping):
        conversation = conversation.get("id")
    offered = (
        _as_meant(headers.get(SESSION_HEADER, "")),
        *(named.get(name) for name in _METADATA),
        conversation,
        body.get("user"),
    )
    return next(filter(None, map(_clean, offered)), "")


def _as_meant(header: str) -> str:
    """A header in UTF-8: HTTP knows latin-1 only, and most clients send UTF-8 all the same."""
    try:
        return header.encode("latin-1").decode()
    except UnicodeError:
        return header


def _clean(value: object) -> str:
    """A name that a row can hold; one that is too long becomes its hash."""
    if not isinstance(value, str):
        return ""
    name = "".join(filter(str.isprintable, value)).strip()
    if len(name) <= MAX_SESSION:
        return name
    return hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()
