"""What becomes of facts: stored, shown to somebody first, or dropped.

Dropped is what holds a secret and what the memory itself has just said. A person decides about
facts of little confidence and about what reads like orders to a model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from engine.extract.extractor import extract
from engine.extract.facts import Category, Extraction, Fact, Guarded, Polarity, Speaker
from engine.extract.feedback import is_said_already, without_injected
from engine.extract.instructions import is_instruction
from engine.extract.keys import full_slug, key_of
from engine.extract.secrets import has_secret

STORED_FROM: Final = 0.7
"""Confidence from which a fact is stored without asking."""
SHOWN_FROM: Final = 0.3
"""Confidence below which nobody is asked about it either."""
LOW_CONFIDENCE: Final = "low confidence"
INSTRUCTION: Final = "instruction"
_ENDS: Final = " .!?。！？"


@dataclass(frozen=True, slots=True)
class Held:
    """A fact that waits for somebody, and why."""

    fact: Fact
    reason: str


@dataclass(frozen=True, slots=True)
class Screened:
    """The facts of a turn, sorted by what becomes of them."""

    stored: tuple[Fact, ...] = ()
    held: tuple[Held, ...] = ()
    dropped: tuple[Guarded, ...] = ()


def read_turn(
    text: str, *, speaker: Speaker = Speaker.USER, injected: Sequence[str] = ()
) -> Screened:
    """The facts of a turn by rules, screened; ``injected`` is what memory put into its prompt."""
    return screen(extract(without_injected(text, injected), speaker=speaker), injected=injected)


def screen(extraction: Extraction, *, injected: Sequence[str] = ()) -> Screened:
    """Sort facts, wherever they come from: by rules or from a model."""
    stored: list[Fact] = []
    held: list[Held] = []
    dropped = list(extraction.guarded)
    facts = [fact for fact in extraction.facts if not _is_told(fact, extraction.instructions)]
    for fact in [*facts, *_orders(facts, extraction.instructions)]:
        safe = _without_secret(fact)
        reason = _why_dropped(safe, injected)
        if safe is None or reason:
            dropped.append(Guarded("" if safe is None else safe.statement, reason))
        elif why := _why_held(safe):
            held.append(Held(safe, why))
        else:
            stored.append(safe)
    return Screened(tuple(stored), tuple(held), tuple(_shown(dropped)))


def _is_told(fact: Fact, instructions: Sequence[str]) -> bool:
    """Whether a fact is all of an instruction, which waits by itself."""
    return any(fact.statement == text.rstrip(_ENDS) for text in instructions)


def _orders(facts: Sequence[Fact], instructions: Sequence[str]) -> Iterator[Fact]:
    """Instructions of which no fact came, as facts somebody may accept."""
    said = " ".join(fact.statement for fact in facts)
    for text in instructions:
        if text not in said:
            yield Fact(
                category=Category.INSTRUCTION,
                content=text,
                statement=text,
                key=key_of(Category.INSTRUCTION, text),
                full_slug=full_slug(text),
                polarity=Polarity.POSITIVE,
                speaker=Speaker.USER,
                confidence=1.0,
                rule=INSTRUCTION,
                language="",
                start=0,
            )


def _without_secret(fact: Fact) -> Fact | None:
    if has_secret(fact.content) or has_secret(fact.key):
        return None
    return replace(fact, statement=fact.content) if has_secret(fact.statement) else fact


def _why_dropped(fact: Fact | None, injected: Sequence[str]) -> str:
    if fact is None:
        return "secret"
    if fact.confidence < SHOWN_FROM:
        return LOW_CONFIDENCE
    return "said by memory" if is_said_already(fact, injected) else ""


def _why_held(fact: Fact) -> str:
    if fact.category is Category.INSTRUCTION or is_instruction(fact.statement):
        return INSTRUCTION
    return LOW_CONFIDENCE if fact.confidence < STORED_FROM else ""


def _shown(dropped: Sequence[Guarded]) -> Iterator[Guarded]:
    """What was dropped, without any text that holds a secret."""
    for piece in dropped:
        yield replace(piece, text="") if has_secret(piece.text) else piece
