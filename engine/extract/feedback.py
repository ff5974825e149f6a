"""Keeps extraction from learning again what memory itself said: no fact from injected text.

The caller passes what was injected. Where it stands word for word it is cut out, and a fact that
says nearly the same is dropped: a model repeats its prompt in other words.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Final

from engine.extract.facts import Fact, Polarity
from engine.text.normalize import normalize

SAME: Final = 0.8
"""Share of the words of a fact from which it counts as said by the memory already."""
SHORTEST: Final = 8
"""Characters of an injected text below which it is only compared with whole facts."""
_FENCE: Final = re.compile(
    r"<(?P<tag>[a-z_-]*memor(?:y|ies)[a-z_-]*)\b[^>]{0,300}>.*?(?:</(?P=tag)>|\Z)"
    r"|^[ \t]*Memory context:[^\n]*(?:\n(?!\s*\n)[^\n]*)*",
    re.IGNORECASE | re.DOTALL | re.MULTILINE,
)
# A mind that was changed is no echo.
_NEGATION: Final = re.compile(
    r"\b(?:not|no|never|hate[sd]?|dislike[sd]?|avoids?|can't|cannot|rarely|against|loathes?)\b|n['’]t\b"
    r"|[不没]|讨厌|討厭|ない|ません|嫌い|苦手|へん",
    re.IGNORECASE,
)
_WORD: Final = re.compile(r"[a-z0-9][a-z0-9+#.'-]*|[^\W\d_a-z]", re.UNICODE)
_FEW = """
    i i'm i've i'll am is are the a an my to of and or in on at for user user's prefers prefer likes
    like me you your they them"""
_LITTLE: Final = frozenset(_FEW.split())


def without_injected(text: str, injected: Collection[str]) -> str:
    """A turn without our fenced block and without the texts that were injected."""
    text = _FENCE.sub("\n", text)
    for piece in sorted(injected, key=len, reverse=True):
        if len(piece.strip()) >= SHORTEST:
            text = text.replace(piece.strip(), "\n")
    return text


def is_said_already(fact: Fact, injected: Sequence[str]) -> bool:
    """Whether an injected memory says nearly the same as a fact."""
    own = _words(fact.content)
    is_negative = fact.polarity is Polarity.NEGATIVE
    return bool(own) and any(
        _covers(_words(text), own) and (_NEGATION.search(text) is not None) is is_negative
        for text in injected
    )


def _covers(said: frozenset[str], own: frozenset[str]) -> bool:
    shared = len(said & own)
    return shared / len(own) >= SAME and shared / max(1, len(said)) >= SAME / 2


def _words(text: str) -> frozenset[str]:
    found = frozenset(word.rstrip(".'") for word in _WORD.findall(normalize(text)))
    return found - _LITTLE or found
