"""Bodies of requests and replies: JSON as it came, of which nothing is certain."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from math import isfinite
from typing import TypeGuard

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
Body = dict[str, Json]


class Protocol(StrEnum):
    """Whose words a request is in."""

    CHAT = "chat"
    """OpenAI's chat completions."""
    RESPONSES = "responses"
    """OpenAI's responses."""
    MESSAGES = "messages"
    """Anthropic's messages."""


def parse(raw: bytes) -> Body | None:
    """The object that a body holds; None when it holds none, or a number that cannot be kept."""
    try:
        body = json.loads(raw, parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError):
        return None
    return body if isinstance(body, dict) else None


def dumped(body: Body) -> bytes:
    """A body as bytes, compact. Raises ``ValueError`` for one that is nested too deeply."""
    try:
        text = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode()
    except UnicodeEncodeError:
        # Half a surrogate pair came as an escape, and leaves as one.
        return json.dumps(body, allow_nan=False, separators=(",", ":")).encode()
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _refuse(name: str) -> None:
    raise ValueError(name)


def _finite(digits: str) -> float:
    number = float(digits)
    if not isfinite(number):
        raise ValueError(digits)
    return number


def objects(value: object) -> Iterator[dict[str, Json]]:
    """The objects of a list; nothing for what is no list."""
    if isinstance(value, list):
        yield from (entry for entry in value if isinstance(entry, dict))


def texts(content: object) -> list[str]:
    """The texts of a content: a string, or the parts of a list that are text."""
    if isinstance(content, str):
        return [content]
    found = []
    for part in content if isinstance(content, list) else []:
        text = part if isinstance(part, str) else _text_of(part)
        if isinstance(text, str):
            found.append(text)
    return found


def _text_of(part: object) -> object:
    return part.get("text") if isinstance(part, Mapping) else None


def joined(content: object) -> str:
    """The texts of a content, one below the other."""
    return "\n".join(texts(content)).strip()


def has_messages(value: object) -> TypeGuard[list[Json]]:
    """Whether this is a list of messages with something in it."""
    return isinstance(value, list) and bool(value)


def is_content(value: object) -> bool:
    """Whether a text can be added to this: to a text, to parts, or where nothing is."""
    return value is None or isinstance(value, str | list)


def last_user_turn(messages: Sequence[object]) -> int | None:
    """Where the user said something last; what tools gave back is no such turn."""
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if isinstance(message, Mapping) and _is_said_by_user(message):
            return index
    return None


def _is_said_by_user(message: Mapping[str, object]) -> bool:
    return message.get("role") == "user" and bool(joined(message.get("content")))


def is_marked(value: object) -> bool:
    """Whether there is a ``cache_control`` anywhere in this."""
    if isinstance(value, dict):
        return value.get("cache_control") is not None or any(map(is_marked, value.values()))
    return isinstance(value, list) and any(map(is_marked, value))
