"""What extraction gives: facts, and clauses that a guard held back."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from engine.types import MemoryType

MAX_TEXT: Final = 65_536
"""Characters of a turn that are looked at: its end, as the first seed does."""
MAX_CONTENT: Final = 500
"""Characters of a fact, as the first seed does."""


class Category(StrEnum):
    """The families of facts, in the order in which they are given."""

    IDENTITY = "identity"
    PREFERENCE = "preference"
    DECISION = "decision"
    PATTERN = "pattern"
    INSTRUCTION = "instruction"
    """Orders to a model: never stored unless somebody accepts it."""

    @property
    def memory_type(self) -> MemoryType:
        """The type of memory a fact becomes."""
        return _TYPES.get(self, MemoryType.FACTUAL)


_TYPES: Final = {
    Category.DECISION: MemoryType.EPISODIC,
    Category.INSTRUCTION: MemoryType.PROCEDURAL,
}


class Polarity(StrEnum):
    """Whether a fact is for or against what it names."""

    POSITIVE = "positive"
    NEGATIVE = "negative"


class Speaker(StrEnum):
    """Who said it."""

    USER = "user"
    ASSISTANT = "assistant"


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing learnt from a turn.

    ``content`` is the seed's: what is preferred or done, with the negation when there is one.
    ``statement`` is the whole clause that says it; both are the speaker's own words. ``key`` is
    ``category:slug``: a later fact with the same key takes its place. ``full_slug`` is the slug
    uncut, for whoever must tell two facts apart whose keys were cut alike.
    """

    category: Category
    content: str
    statement: str
    key: str
    full_slug: str
    polarity: Polarity
    speaker: Speaker
    confidence: float
    rule: str
    language: str
    start: int

    @property
    def type(self) -> MemoryType:
        """The type of memory it becomes."""
        return self.category.memory_type


@dataclass(frozen=True, slots=True)
class Guarded:
    """A clause that looked like a fact, and the guard that held it back."""

    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class Extraction:
    """Everything one turn gave."""

    facts: tuple[Fact, ...] = ()
    guarded: tuple[Guarded, ...] = ()
    instructions: tuple[str, ...] = ()
