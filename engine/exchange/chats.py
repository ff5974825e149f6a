"""Chats of ChatGPT and Claude as they export them: each turn of the person becomes a memory."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from engine.exchange.found import Choices, Found, Item, LeftOut, Place, Reason, Refused

CHATGPT_TEXTS: Final = ("text", "multimodal_text")
_HEADING: Final = re.compile(r"#{1,6}\s+(.+)|\*\*(.+?)\*\*:?")
_SLUG: Final = re.compile(r"\W+")


@dataclass(frozen=True, slots=True)
class Turn:
    """What was said: by whom, when (ISO 8601), in which chat; ``key`` is its name in its source."""

    source: str
    text: str
    key: str
    session: str
    title: str
    speaker: str
    moment: str

    def record(self) -> dict[str, Any]:
        """The turn as a record."""
        metadata = {"source": self.source, "speaker": self.speaker}
        return {
            "content": self.text,
            "key": f"{self.source}:{self.key}",
            "type": "episodic",
            "sessionId": self.session,
            "metadata": {**metadata, "title": self.title} if self.title else metadata,
            "createdAt": self.moment,
            "occurredAt": self.moment,
        }


def chatgpt(chat: object, place: Place, choices: Choices) -> Iterator[Item]:
    """The turns of one conversation of ``conversations.json``: those on the way to its last one,
    or all where it does not say which that is."""
    mapping = chat.get("mapping") if isinstance(chat, Mapping) else None
    if not isinstance(chat, Mapping) or not isinstance(mapping, Mapping):
        yield Refused(place, Reason.NOT_A_CHAT)
        return
    for message in _on_the_way(chat, mapping):
        turn = _chatgpt_turn(message)
        if turn is None:
            continue
        text, role = turn
        if (role == "assistant" and not choices.assistant) or not text.strip():
            yield LeftOut(place)
            continue
        session = _text(chat, "conversation_id") or _text(chat, "id")
        yield Found(
            place,
            Turn(
                source="chatgpt",
                text=text,
                key=_text(message, "id") or _digest(session, text),
                session=session,
                title=_text(chat, "title"),
                speaker=role,
                moment=_of_seconds(message.get("create_time") or chat.get("create_time")),
            ).record(),
        )


def _on_the_way(chat: Mapping[str, Any], mapping: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Messages in order. An edited question leaves a branch behind that leads nowhere."""
    path: dict[str, Mapping[str, Any]] = {}
    at = chat.get("current_node")
    while isinstance(at, str) and at not in path and isinstance(mapping.get(at), Mapping):
        path[at] = mapping[at]
        at = mapping[at].get("parent")
    nodes = list(reversed(path.values())) or [n for n in mapping.values() if isinstance(n, Mapping)]
    for node in nodes:
        message = node.get("message")
        if isinstance(message, Mapping):
            yield message


def _chatgpt_turn(message: Mapping[str, Any]) -> tuple[str, str] | None:
    """Text and role of a message that a reader of the chat sees; None for any other."""
    author, content = message.get("author"), message.get("content")
    role = author.get("role") if isinstance(author, Mapping) else None
    if role not in ("user", "assistant") or not isinstance(content, Mapping):
        return None
    metadata = message.get("metadata")
    is_hidden = isinstance(metadata, Mapping) and bool(
        metadata.get("is_visually_hidden_from_conversation")
    )
    if is_hidden or content.get("content_type", "text") not in CHATGPT_TEXTS:
        return None
    parts = content.get("parts")
    texts = [_part(part) for part in parts] if isinstance(parts, list) else [_text(content, "text")]
    return "\n".join(text for text in texts if text.strip()), role


def _part(part: object) -> str:
    if isinstance(part, str):
        return part
    is_spoken = isinstance(part, Mapping) and part.get("content_type") == "audio_transcription"
    return _text(part, "text") if is_spoken and isinstance(part, Mapping) else ""


def claude(chat: object, place: Place, choices: Choices) -> Iterator[Item]:
    """The turns of one conversation of Claude's ``conversations.json``."""
    messages = chat.get("chat_messages") if isinstance(chat, Mapping) else None
    if not isinstance(chat, Mapping) or not isinstance(messages, list):
        yield Refused(place, Reason.NOT_A_CHAT)
        return
    session = _text(chat, "uuid")
    for message in messages:
        if not isinstance(message, Mapping):
            yield Refused(place, Reason.NOT_A_CHAT)
            continue
        text, is_person = _claude_text(message), message.get("sender") in ("human", "user")
        if (not is_person and not choices.assistant) or not text.strip():
            yield LeftOut(place)
            continue
        yield Found(
            place,
            Turn(
                source="claude",
                text=text,
                key=_text(message, "uuid") or _digest(session, text),
                session=session,
                title=_text(chat, "name"),
                speaker="user" if is_person else "assistant",
                moment=_text(message, "created_at") or _text(chat, "created_at"),
            ).record(),
        )


def _claude_text(message: Mapping[str, Any]) -> str:
    blocks = message.get("content")
    texts = [
        _text(block, "text")
        for block in (blocks if isinstance(blocks, list) else ())
        if isinstance(block, Mapping) and block.get("type", "text") == "text"
    ]
    return "\n\n".join(text for text in texts if text.strip()) or _text(message, "text")


def claude_memory(entry: Mapping[str, Any], place: Place) -> Iterator[Item]:
    """What Claude remembers of a person and of projects: a memory for each section of its text."""
    yield from _sections(entry.get("conversations_memory"), "claude:memory", {}, place)
    projects = entry.get("project_memories")
    if not isinstance(projects, Mapping):
        return
    for project, text in projects.items():
        yield from _sections(text, f"claude:project:{project}", {"project": project}, place)


def _sections(text: object, key: str, metadata: Mapping[str, str], place: Place) -> Iterator[Item]:
    seen: Counter[str] = Counter()
    for title, body in _titled(text) if isinstance(text, str) else ():
        name = f"{key}:{_slug(title)}" if title else key
        seen[name] += 1
        record = {
            "content": body,
            "key": f"{name}:{seen[name]}" if seen[name] > 1 else name,
            "metadata": {"source": "claude", **metadata, **({"title": title} if title else {})},
        }
        yield Found(place, record)


def _titled(text: str) -> Iterator[tuple[str, str]]:
    """The texts under each heading, with it; a line that is bold as a whole is one."""
    title, lines = "", list[str]()
    for line in text.split("\n"):
        match = _HEADING.fullmatch(line.strip())
        if match is None:
            lines.append(line)
            continue
        if body := "\n".join(lines).strip():
            yield title, body
        title, lines = (match[1] or match[2]).strip(), []
    if body := "\n".join(lines).strip():
        yield title, body


def _slug(title: str) -> str:
    return _SLUG.sub("-", title.casefold()).strip("-") or _digest(title)


def _text(record: Mapping[str, Any], name: str) -> str:
    value = record.get(name)
    return value if isinstance(value, str) else ""


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode("utf-8", "replace")).hexdigest()[:16]


def _of_seconds(value: object) -> str:
    """Seconds since the epoch as ISO 8601; nothing for what is no time."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ""
    try:
        return datetime.fromtimestamp(value, UTC).isoformat(timespec="microseconds")
    except (ValueError, OverflowError, OSError):
        return ""
