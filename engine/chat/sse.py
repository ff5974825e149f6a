"""Server-sent events as they pass by: the text of a reply that comes in pieces.

Bytes are looked at, never changed. What is no event or no JSON is passed over.
"""

from __future__ import annotations

import json
from typing import Final

from engine.chat.bodies import objects

MAX_LINE_BYTES: Final = 2**20
MAX_TEXT: Final = 65_536
"""Of a long reply the end is kept."""


class ReplyReader:
    """Puts a streamed reply together. Feed it every chunk; ``text`` is what was said so far."""

    def __init__(self) -> None:
        self._rest = b""
        self._is_skipping = False
        self._parts: list[str] = []
        self._size = 0
        self.is_complete = False
        """Whether the stream said that it is over."""

    @property
    def text(self) -> str:
        """The end of what was said."""
        return "".join(self._parts)[-MAX_TEXT:].strip()

    def feed(self, chunk: bytes) -> None:
        """Take in the next bytes."""
        lines = (self._rest + chunk).split(b"\n")
        self._rest = lines.pop()
        for line in lines:
            if self._is_skipping:
                self._is_skipping = False
            elif line.startswith(b"data:"):
                self._event(line[5:].strip())
        if len(self._rest) > MAX_LINE_BYTES:
            self._rest, self._is_skipping = b"", True

    def _event(self, data: bytes) -> None:
        if data == b"[DONE]":
            self.is_complete = True
            return
        try:
            event = json.loads(data)
        except (ValueError, RecursionError):
            return
        if isinstance(event, dict):
            self.is_complete |= event.get("type") in ("message_stop", "response.completed")
            self._keep(_delta(event))

    def _keep(self, text: str) -> None:
        if not text:
            return
        self._parts.append(text)
        self._size += len(text)
        if self._size > 2 * MAX_TEXT:
            self._parts = ["".join(self._parts)[-MAX_TEXT:]]
            self._size = len(self._parts[0])


def _delta(event: dict[str, object]) -> str:
    """The text that one event adds, in any of the protocols."""
    for choice in objects(event.get("choices")):
        if choice.get("index", 0) == 0:
            return _text(choice.get("delta"), "content")
    kind = event.get("type")
    if kind == "content_block_delta":
        return _text(event.get("delta"), "text")
    return _text(event, "delta") if kind == "response.output_text.delta" else ""


def _text(holder: object, name: str) -> str:
    value = holder.get(name) if isinstance(holder, dict) else None
    return value if isinstance(value, str) else ""
