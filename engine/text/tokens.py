"""How many tokens a text costs, without a tokenizer.

ASCII counts as one token for four characters, rounded up, like the first seed. Other characters
count one by one, with weights measured on o200k: over whole corpora the estimate is at most 10 %
under and 40 % over.
"""

from __future__ import annotations

import re

from engine.text.normalize import HAN, HANGUL, KANA

_UNIT = 20
_WEIGHTS: tuple[tuple[re.Pattern[str], int], ...] = tuple(
    (re.compile(f"[{characters}]+"), weight)
    for characters, weight in (
        ("\\x00-\\x7f", 5),
        (HAN, 20),
        (KANA, 16),
        (HANGUL, 14),
        # Greek, Cyrillic, Armenian, Hebrew, Arabic; then India's scripts; then Thai and its kind.
        ("\u0370-\u08ff", 9),
        ("\u0900-\u0dff", 9),
        ("\u0e00-\u109f\u1780-\u17ff", 12),
        ("\u2600-\u27bf\U0001f000-\U0001faff", 40),
    )
)
_OTHER = 20


def estimate_tokens(text: object) -> int:
    """Tokens of a text, at least 1 unless it is empty; anything but a string costs 0."""
    if not isinstance(text, str):
        return 0
    if text.isascii():
        return -(-len(text) // 4)
    total = 0
    for pattern, weight in _WEIGHTS:
        left = pattern.sub("", text)
        total += weight * (len(text) - len(left))
        text = left
        if not text:
            break
    return -(-(total + _OTHER * len(text)) // _UNIT)


def cut_to_tokens(text: str, max_tokens: int) -> str:
    """The beginning of a text that costs at most ``max_tokens``, with an ellipsis when cut."""
    if estimate_tokens(text) <= max_tokens:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if estimate_tokens(text[:middle] + "…") <= max_tokens:
            low = middle
        else:
            high = middle - 1
    return text[:low].rstrip() + "…" if low else ""
