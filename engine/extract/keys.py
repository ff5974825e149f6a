"""Keys of facts: ``category:slug`` as the first seed makes them, told apart where its slug cannot.

The seed's slug keeps ASCII letters and digits only, so that ``C``, ``C++`` and ``C#`` are one key
and so is everything in Chinese. Where it drops a character that means something, eight hexadecimal
digits of the object's hash follow.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

from engine.text.normalize import fold, normalize

SLUG_LENGTH: Final = 40
_NOT_SLUG: Final = re.compile("[^a-z0-9]+")
# Between words these part them; at either end of the object they are part of a name.
_SAYS_NOTHING: Final = re.compile(
    r"""[\s_'"’‘“”,;:!?()\[\]{}`]+|(?<=[a-z0-9])[-./]+(?=[\s\w]|$)""", re.VERBOSE
)
_ASCII_WORD: Final = re.compile("[a-z0-9]")


def full_slug(text: str) -> str:
    """The seed's slug before it is cut."""
    return _NOT_SLUG.sub("_", fold(text))


def slug(text: str) -> str:
    """The seed's slug: at most 40 characters, no underscore at its end."""
    return full_slug(text)[:SLUG_LENGTH].rstrip("_")


def key_of(category: str, text: str) -> str:
    """The key of a fact about ``text``."""
    short = slug(text)
    if not loses_something(text):
        return f"{category}:{short}"
    return f"{category}:{short}{'_' if short else ''}{digest(text)}"


def loses_something(text: str) -> bool:
    """Whether the seed's slug drops characters that tell one object from another."""
    rest = _SAYS_NOTHING.sub("", normalize(text))
    return not rest or bool(_ASCII_WORD.sub("", rest))


def digest(text: str) -> str:
    """Eight hexadecimal digits for a text, whatever its width, case and spacing."""
    return hashlib.sha256(normalize(text).encode()).hexdigest()[:8]
