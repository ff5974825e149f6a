"""How a term is written in the index, and which terms of a query stand for their beginnings."""

from __future__ import annotations

import re

from engine.text.normalize import has_han, has_unspaced

# FTS5 splits at ASCII punctuation; moved to the private use area, it is part of a term.
_KEEP_PUNCTUATION = {
    code: 0xE000 + code for code in range(128) if not chr(code).isalnum() and chr(code) != " "
}
_PUNCTUATION = re.compile(f"[{re.escape(''.join(map(chr, _KEEP_PUNCTUATION)))}]")


def stored(terms: str) -> str:
    """Terms as the index holds them; spaces stay."""
    # Most hold no punctuation, and to look for it is many times faster than to translate.
    return terms.translate(_KEEP_PUNCTUATION) if _PUNCTUATION.search(terms) else terms


def is_prefix(term: str) -> bool:
    """Whether a query's term finds whatever begins with it.

    A lone kana or Hangul character is no term of its own but begins one (search_terms).
    """
    return len(term) == 1 and has_unspaced(term) and not has_han(term)
