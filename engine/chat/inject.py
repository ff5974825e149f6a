"""Putting memories into a request: whether at all, in which style, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from engine.chat import classic
from engine.chat.block import FRAME_TOKENS, Note, Rendered, render
from engine.chat.bodies import Body, Protocol, has_messages
from engine.chat.placing import with_block
from engine.text.tokens import estimate_tokens


class Style(StrEnum):
    """How memories are told to a model."""

    BLOCK = "block"
    CLASSIC = "classic"


@dataclass(frozen=True, slots=True)
class Aim:
    """Whom a request is for: the protocol it speaks, the provider's kind and the model."""

    protocol: Protocol
    provider: str = ""
    model: str = ""


@dataclass(frozen=True, slots=True)
class Injected:
    """A request with memories in it: ``ids`` of those, and where they are."""

    body: Body
    text: str
    tokens: int
    ids: tuple[str, ...]
    place: str


def should_inject(body: object, *, enabled: bool) -> bool:
    """Whether a request can be given memories at all: it has turns, and memory is on."""
    if not enabled or not isinstance(body, Mapping):
        return False
    asked = body.get("input")
    is_said = isinstance(asked, str) and bool(asked.strip())
    return has_messages(body.get("messages")) or has_messages(asked) or is_said


def room_for_notes(style: Style, max_tokens: int) -> int:
    """Of a budget for the whole text, what is left for memories."""
    frame = FRAME_TOKENS if style is Style.BLOCK else estimate_tokens(classic.PREFIX)
    return max(max_tokens - frame, 0)


def inject(
    body: Body, notes: Sequence[Note], *, aim: Aim, style: Style, max_tokens: int
) -> Injected | None:
    """A request with the notes in it, the best first; None when nothing was put in.

    The body given is left as it is.
    """
    if style is Style.CLASSIC:
        return _classic(body, notes, aim)
    block = render(notes, max_tokens=max_tokens)
    if block is None:
        return None
    placed = with_block(
        body, block.text, protocol=aim.protocol, provider=aim.provider, model=aim.model
    )
    return _injected(placed[0], block, placed[1]) if placed else None


def _classic(body: Body, notes: Sequence[Note], aim: Aim) -> Injected | None:
    text = classic.context(note.text for note in notes)
    if not text:
        return None
    placed = classic.with_context(
        body, text, protocol=aim.protocol, provider=aim.provider, model=aim.model
    )
    if placed is None:
        return None
    ids = tuple(note.id for note in notes if note.text.strip())
    return _injected(placed, Rendered(text, estimate_tokens(text), ids), "classic")


def _injected(body: Body, rendered: Rendered, place: str) -> Injected:
    return Injected(body, rendered.text, rendered.tokens, rendered.ids, str(place))
