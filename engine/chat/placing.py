"""Where our block goes: late enough that prompt caches keep what they have, and never before a
``cache_control`` mark.

A cache keeps the longest beginning that a request shares with an earlier one. What changes from
turn to turn therefore goes near the end of what stays: the system prompt of Anthropic and the
instructions of responses where nothing behind them is marked, else the user's last turn.
"""

from __future__ import annotations

from enum import StrEnum

from engine.chat.bodies import Body, Json, Protocol, is_content, is_marked, last_user_turn
from engine.chat.families import takes_system, takes_system_anywhere, wants_system_first

Messages = list[Json]


class Place(StrEnum):
    """Where the block is."""

    SYSTEM = "system"
    """At the end of the system prompt."""
    INSTRUCTIONS = "instructions"
    SYSTEM_TURN = "system_turn"
    """A system message before the user's last turn."""
    USER_TURN = "user_turn"
    """In the user's last turn, before what the user says."""
    AFTER_MARK = "after_mark"
    """Behind the last mark of the client's own cache."""


def with_block(
    body: Body, text: str, *, protocol: Protocol, provider: str, model: str = ""
) -> tuple[Body, Place] | None:
    """A body with the block in it, and where; None when it has no place for one.

    The body given is left as it is. ``provider`` and ``model`` decide about system messages.
    """
    if protocol is Protocol.RESPONSES:
        return _in_instructions(body, text)
    if protocol is Protocol.MESSAGES:
        body = _with_own_mark(body)
    messages = body.get("messages")
    if not isinstance(messages, list):
        return None
    mark = _last_mark(messages)
    if mark is not None:
        placed = _behind(messages, mark, text)
        return ({**body, "messages": placed}, Place.AFTER_MARK) if placed else None
    if protocol is Protocol.CHAT:
        return _in_chat(body, messages, text, names=(provider, model))
    if not is_content(body.get("system")):
        return None
    return {**body, "system": _after_content(body.get("system"), text)}, Place.SYSTEM


def _in_instructions(body: Body, text: str) -> tuple[Body, Place] | None:
    given = body.get("instructions")
    if given is not None and not isinstance(given, str):
        return None
    return {**body, "instructions": _after(given or "", text)}, Place.INSTRUCTIONS


def _with_own_mark(body: Body) -> Body:
    """A mark of the whole request, which Anthropic puts on its last block, written there.

    Else that last block would be ours, and no later request would begin with it.
    """
    mark, messages = body.get("cache_control"), body.get("messages")
    if mark is None or not isinstance(messages, list) or not messages:
        return body
    marked = _marked_within(messages[-1], mark)
    if marked is None:
        return body
    rest = {name: value for name, value in body.items() if name != "cache_control"}
    return {**rest, "messages": [*messages[:-1], marked]}


def _marked_within(message: Json, mark: Json) -> Json:
    """A message whose last part carries a mark; None where it has no such part."""
    content = message.get("content") if isinstance(message, dict) else None
    parts: Json = [{"type": "text", "text": content}] if isinstance(content, str) else content
    block = parts[-1] if isinstance(parts, list) and parts else None
    if not isinstance(message, dict) or not isinstance(parts, list) or not isinstance(block, dict):
        return None
    return {**message, "content": [*parts[:-1], {"cache_control": mark, **block}]}


def _in_chat(
    body: Body, messages: Messages, text: str, *, names: tuple[str, str]
) -> tuple[Body, Place]:
    turn = last_user_turn(messages)
    if any(map(wants_system_first, names)) or turn is None:
        return {**body, "messages": _in_system(messages, text)}, Place.SYSTEM
    if takes_system_anywhere(names[0]) and all(map(takes_system, names)):
        own: Json = {"role": "system", "content": text}
        return {**body, "messages": [*messages[:turn], own, *messages[turn:]]}, Place.SYSTEM_TURN
    return {**body, "messages": _replaced(messages, turn, text, at=0)}, Place.USER_TURN


def _in_system(messages: Messages, text: str) -> Messages:
    """The block at the end of the first system message, or as the first message."""
    first = messages[0] if messages else None
    is_system = isinstance(first, dict) and first.get("role") in ("system", "developer")
    if not isinstance(first, dict) or not is_system or not is_content(first.get("content")):
        return [{"role": "system", "content": text}, *messages]
    return [{**first, "content": _after_content(first.get("content"), text)}, *messages[1:]]


def _last_mark(messages: Messages) -> tuple[int, int] | None:
    """Message and part of the last mark; a mark of the message itself is after its parts."""
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if not isinstance(message, dict) or not is_marked(message):
            continue
        content = message.get("content")
        parts = content if isinstance(content, list) else []
        if message.get("cache_control") is not None or not is_marked(content):
            return index, max(len(parts), 1)
        return index, max(at for at, part in enumerate(parts) if is_marked(part)) + 1
    return None


def _behind(messages: Messages, mark: tuple[int, int], text: str) -> Messages | None:
    """Messages with the block in the first place of a user behind the mark."""
    index, part = mark
    turn = last_user_turn(messages)
    if turn is not None and turn > index:
        return _replaced(messages, turn, text, at=0)
    if _is_user(messages[index]):
        own = _without_own_mark(messages[index])
        return _replaced([*messages[:index], own, *messages[index + 1 :]], index, text, at=part)
    later = [at for at in range(index + 1, len(messages)) if _is_user(messages[at])]
    return _replaced(messages, later[0], text, at=0) if later else None


def _without_own_mark(message: Json) -> Json:
    """A message with a mark of its own on its last part instead: ours comes behind it."""
    mark = message.get("cache_control") if isinstance(message, dict) else None
    marked = None if mark is None else _marked_within(message, mark)
    if not isinstance(marked, dict):
        return message
    return {name: value for name, value in marked.items() if name != "cache_control"}


def _is_user(message: Json) -> bool:
    return isinstance(message, dict) and message.get("role") == "user"


def _replaced(messages: Messages, index: int, text: str, *, at: int) -> Messages:
    message = messages[index]
    if not isinstance(message, dict):
        return messages
    content = _inserted(message.get("content"), text, at)
    return [*messages[:index], {**message, "content": content}, *messages[index + 1 :]]


def _inserted(content: Json, text: str, at: int) -> Json:
    """The block among the parts of a content, never before the result of a tool."""
    if isinstance(content, list):
        results = [n for n, part in enumerate(content, 1) if _is_tool_result(part)]
        at = max([at, *results])
        return [*content[:at], {"type": "text", "text": text}, *content[at:]]
    said = content if isinstance(content, str) else ""
    return _after(text, said) if at == 0 else _after(said, text)


def _is_tool_result(part: Json) -> bool:
    return isinstance(part, dict) and part.get("type") == "tool_result"


def _after_content(content: Json, text: str) -> Json:
    if isinstance(content, list):
        return [*content, {"type": "text", "text": text}]
    return _after(content if isinstance(content, str) else "", text)


def _after(first: str, second: str) -> str:
    return f"{first}\n\n{second}" if first and second else first or second
