"""What of a conversation is remembered: the one place where turns become texts.

Extraction is to be called here. Until there is one, what the user said is kept as it was said,
and the answer tells so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from memory.principal import Principal


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a conversation; ``name`` is of who said it, where that is told."""

    role: str
    content: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Inferred:
    """The turns to remember, and what the caller should know of how they were chosen."""

    turns: tuple[Turn, ...]
    note: str = ""


def infer(_principal: Principal, turns: Sequence[Turn]) -> Inferred:
    """What of these turns is worth remembering."""
    note = _("What the user said was stored word for word: no facts were extracted from it.")
    return Inferred(tuple(turn for turn in turns if turn.role == "user"), note)
