"""What was said: the user's last turn of a request, and the text of a reply."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from typing import Final

from engine.chat.bodies import joined, last_user_turn, objects

_OPENING: Final = re.compile(r"<([A-Za-z][\w.:-]{0,60})(?:\s[^<>]{0,300})?>")
_CLOSING: Final = re.compile(r"</([A-Za-z][\w.:-]{0,60})>")
_OF_THE_USER: Final = re.compile(
    r"(?:user[-_]?)?(?:query|message|request|prompt|question|input|task|feedback|answer|user)",
    re.IGNORECASE,
)
_RESULTS: Final = ("tool", "function")


def request_text(body: object) -> str:
    """The text of the user's last turn, its parts one below the other; empty without one.

    Turns that only carry results of tools are passed over.
    """
    if not isinstance(body, Mapping):
        return ""
    for name in ("messages", "input"):
        turns = body.get(name)
        if isinstance(turns, str):
            return turns.strip()
        if isinstance(turns, list):
            last = last_user_turn(turns)
            if last is not None:
                return joined(turns[last].get("content"))
    return ""


def is_said_before(body: object) -> bool:
    """Whether the user's last turn came with an earlier request: the results of tools follow it."""
    turns = body.get("messages") or body.get("input") if isinstance(body, Mapping) else None
    last = last_user_turn(turns) if isinstance(turns, list) else None
    if not isinstance(turns, list) or last is None:
        return False
    is_answered = False
    for turn in objects(turns[last + 1 :]):
        role = turn.get("role")
        if role in _RESULTS or str(turn.get("type")).endswith("_output"):
            return True
        if role == "user" and is_answered:
            return True
        is_answered |= role == "assistant"
    return False


def own_words(text: str) -> str:
    """A turn without what a program put around it: blocks between tags on lines of their own, such
    as the reminders and surroundings that coding agents add.
    """
    lines = text.split("\n")
    ends: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        if found := _CLOSING.fullmatch(line.strip()):
            ends.setdefault(found[1], []).append(number)
    kept: list[str] = []
    number = 0
    while number < len(lines):
        end = _end_of_block(lines, number, ends)
        if end is None:
            kept.append(lines[number])
        number = number + 1 if end is None else end + 1
    return "\n".join(kept).strip()


def _end_of_block(lines: list[str], start: int, ends: Mapping[str, list[int]]) -> int | None:
    """Where a block that begins at a line ends; None where none begins, or it is the user's."""
    found = _OPENING.fullmatch(lines[start].strip()) if ends else None
    if found is None or _OF_THE_USER.fullmatch(found[1]):
        return None
    closings = ends.get(found[1], [])
    place = bisect_right(closings, start)
    return closings[place] if place < len(closings) else None


def storable(text: str) -> str:
    """A text without what no database holds: NUL, and halves of surrogate pairs."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def response_text(body: object) -> str:
    """The text of a reply in any of the protocols; empty when it has none."""
    if not isinstance(body, Mapping):
        return ""
    for choice in objects(body.get("choices")):
        message = choice.get("message")
        if isinstance(message, dict) and (text := joined(message.get("content"))):
            return text
    for content in (body.get("content"), body.get("output_text")):
        if text := joined(content):
            return text
    return _output_text(body) or _candidate_text(body)


def _output_text(body: Mapping[str, object]) -> str:
    """The messages among the items of OpenAI's responses."""
    messages = [
        joined(item.get("content"))
        for item in objects(body.get("output"))
        if item.get("type", "message") == "message"
    ]
    return "\n".join(filter(None, messages))


def _candidate_text(body: Mapping[str, object]) -> str:
    """The first candidate of Gemini."""
    for candidate in objects(body.get("candidates")):
        content = candidate.get("content")
        if isinstance(content, dict) and (text := joined(content.get("parts"))):
            return text
    return ""
