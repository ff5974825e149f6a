"""What was said: the user's last turn of a request, and the text of a reply."""

from __future__ import annotations

from collections.abc import Mapping

from engine.chat.bodies import joined, last_user_turn, objects


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
