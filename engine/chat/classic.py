"""The style ``classic``: the first seed's plain text, and where it puts it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engine.chat.bodies import Body, Json, Protocol, is_content, is_marked
from engine.chat.families import takes_system, wants_system_first

PREFIX = "Memory context: "


def context(memories: Iterable[str]) -> str:
    """The text: contents one below the other, blank ones left out; empty without any."""
    lines = [line for memory in memories if (line := memory.strip())]
    return PREFIX + "\n".join(lines) if lines else ""


def with_context(
    body: Body, text: str, *, protocol: Protocol, provider: str, model: str = ""
) -> Body | None:
    """A body with the text in it; the one given is left as it is. None where it has no place."""
    if protocol is Protocol.RESPONSES:
        given = body.get("instructions")
        if given is not None and not isinstance(given, str):
            return None
        return {**body, "instructions": _before(text, given or "")}
    if protocol is Protocol.MESSAGES:
        if not is_content(body.get("system")):
            return None
        return {**body, "system": _before_system(text, body.get("system"))}
    messages = body.get("messages")
    found = messages if isinstance(messages, list) else []
    named = provider if takes_system(model) else model
    placed = in_messages(found, text, provider=named, cache_safe=is_marked(body))
    return {**body, "messages": placed}


def in_messages(
    messages: Sequence[Json], text: str, *, provider: object, cache_safe: bool = False
) -> list[Json]:
    """Messages with the text as one of their own at the beginning.

    ``cache_safe`` puts it before the last turn of the user instead. Providers that take one system
    message only get it merged into that.
    """
    if not text:
        return list(messages)
    if wants_system_first(provider):
        return _merged(messages, text)
    own: Json = {"role": "system" if takes_system(provider) else "user", "content": text}
    place = 0
    if cache_safe:
        turns = (at for at, one in enumerate(messages) if _role(one) == "user")
        place = max(turns, default=0)
    return [*messages[:place], own, *messages[place:]]


def _merged(messages: Sequence[Json], text: str) -> list[Json]:
    first = messages[0] if messages else None
    is_system = isinstance(first, dict) and first.get("role") == "system"
    if not isinstance(first, dict) or not is_system or not is_content(first.get("content")):
        return [{"role": "system", "content": text}, *messages]
    return [{**first, "content": _before_system(text, first.get("content"))}, *messages[1:]]


def _before_system(text: str, system: Json) -> Json:
    if isinstance(system, list):
        return [{"type": "text", "text": text}, *system]
    return _before(text, system if isinstance(system, str) else "")


def _before(text: str, rest: str) -> str:
    return f"{text}\n{rest}" if rest else text


def _role(message: Json) -> Json:
    return message.get("role") if isinstance(message, dict) else None
