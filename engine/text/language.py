"""The language of a text as far as its script tells: the key of per-language centring.

Script, not language identification: French and English are both ``latin``. Japanese without any
kana is taken for Chinese; those who use the answer let the two stand in for one another.
"""

from __future__ import annotations

from typing import Final

from engine.text.normalize import Script, script_of

LANGUAGES: Final = {
    Script.HAN: "zh",
    Script.KANA: "ja",
    Script.HANGUL: "ko",
    Script.LATIN: "latin",
    Script.CYRILLIC: "cyrillic",
    Script.OTHER: "other",
}


def language_of(text: str) -> str:
    """One of ``zh``, ``ja``, ``ko``, ``latin``, ``cyrillic``, ``other`` (also: no letters)."""
    return LANGUAGES[script_of(text)]
