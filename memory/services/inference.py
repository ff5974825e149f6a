"""What of a conversation is remembered, for clients that leave that to the studio."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from django.utils.translation import gettext as _

from engine.extract.instructions import is_instruction
from engine.extract.screening import read_turn
from engine.extract.secrets import has_secret


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a conversation; ``name`` is of who said it, where that is told."""

    role: str
    content: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Inferred:
    """The texts to remember, and what the caller should know of how they were chosen."""

    turns: tuple[Turn, ...]
    note: str = ""


def infer(turns: Sequence[Turn]) -> Inferred:
    """What of these turns is worth remembering: of the user's, the facts that rules find.

    Rules find less than people say, so a turn in which they find nothing is kept as it was said;
    not one with a secret in it, nor one that reads like an order to a model.
    """
    kept: list[Turn] = []
    word_for_word = held_back = 0
    for turn in turns:
        if turn.role != "user":
            continue
        facts = read_turn(turn.content).stored
        kept += [replace(turn, content=fact.statement) for fact in facts]
        if not facts and (has_secret(turn.content) or is_instruction(turn.content)):
            held_back += 1
        elif not facts:
            kept.append(turn)
            word_for_word += 1
    return Inferred(tuple(kept), " ".join(_notes(word_for_word, held_back)))


def _notes(word_for_word: int, held_back: int) -> Iterator[str]:
    if word_for_word:
        yield _("Where no fact was found, what the user said was stored word for word.")
    if held_back:
        yield _("What holds a secret, or reads like an order to a model, was not stored.")
