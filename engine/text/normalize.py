"""Text made comparable: NFKC, case folding, whitespace; and which script a text is written in.

What lives here knows characters only, no words: cutting into terms is ``engine.text.tokenize``.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from enum import StrEnum
from functools import lru_cache

HAN = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
"""Han characters as the inside of a regular expression class (with 々〆〇)."""

KANA = "\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"
"""Hiragana and katakana, without the middle dot."""

HANGUL = "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af"
"""Korean syllables and jamo."""

UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
"""Thai, Lao, Burmese and Khmer: scripts that put no space between words."""

_HAN = re.compile(f"[{HAN}]")
_KANA = re.compile(f"[{KANA}]")
_UNSPACED = re.compile(f"[{HAN}{KANA}{HANGUL}{UNSPACED}]")
_SURROGATES = re.compile("[\ud800-\udfff]")
_ASCII_LETTER = re.compile("[A-Za-z]")
_SPACE = re.compile(r"\s+")
_ACCENTS = re.compile("[\u0300-\u036f]")

SCRIPT_SAMPLE = 2000
"""Characters looked at to tell the script of a text."""


class Script(StrEnum):
    """The writing a text mostly uses. ``KANA`` means Japanese: kana, or Han mixed with kana."""

    LATIN = "latin"
    HAN = "han"
    KANA = "kana"
    HANGUL = "hangul"
    CYRILLIC = "cyrillic"
    OTHER = "other"


def without_surrogates(text: str) -> str:
    """The text with U+FFFD for lone surrogates, which neither UTF-8 nor a database takes."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def fold(text: str) -> str:
    """NFKC and case folding, without lone surrogates."""
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKC", without_surrogates(text)).casefold()
    # Folding can leave a text that is no longer NFKC (U+0345 and its kind).
    return unicodedata.normalize("NFKC", folded)


def normalize(text: str) -> str:
    """``fold`` with every run of whitespace as one space, and none at the ends."""
    return _SPACE.sub(" ", fold(text)).strip()


def without_accents(text: str) -> str:
    """The text with combining accents removed: ``café`` as ``cafe``."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFD", text)))


def has_han(text: str) -> bool:
    """Whether a Han character occurs."""
    return _HAN.search(text) is not None


def has_kana(text: str) -> bool:
    """Whether a kana occurs, which tells Japanese from Chinese."""
    return _KANA.search(text) is not None


def has_unspaced(text: str) -> bool:
    """Whether a character occurs that is searched by parts of words: CJK, Thai and its kind."""
    return not text.isascii() and _UNSPACED.search(text) is not None


def script_of(text: str) -> Script:
    """The script most of a text is written in; ``OTHER`` when it holds no letter.

    A Han or kana character counts as two letters, since it says about as much.
    """
    sample = fold(text[:SCRIPT_SAMPLE])
    if sample.isascii():
        return Script.LATIN if _ASCII_LETTER.search(sample) else Script.OTHER
    counts = Counter(map(_script_of_character, sample))
    counts[Script.HAN] *= 2
    counts[Script.KANA] *= 2
    if 0 < counts[Script.HAN] <= counts[Script.KANA] * 10:
        counts[Script.KANA] += counts[Script.HAN]
    best = max(Script, key=lambda script: counts[script])
    return best if counts[best] else Script.OTHER


@lru_cache(maxsize=65536)
def _script_of_character(character: str) -> Script | None:
    if not character.isalpha():
        return None
    if character.isascii():
        return Script.LATIN
    if _KANA.match(character):
        return Script.KANA
    if _HAN.match(character):
        return Script.HAN
    name = unicodedata.name(character, "")
    for script in (Script.LATIN, Script.HANGUL, Script.CYRILLIC):
        if name.startswith(script.upper()):
            return script
    return Script.OTHER
