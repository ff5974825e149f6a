"""Greedy WordPiece over a bare vocabulary, for static models that bring no tokenizer of their own.

Lower case, words cut at blanks alone: punctuation has a piece only as the continuation of a word
(first seed).
"""

from __future__ import annotations

from collections.abc import Mapping

UNKNOWN = "[UNK]"
CONTINUES = "##"
MAX_WORD = 100
"""Longest word that is cut into pieces; anything longer is unknown, which bounds the work."""


def token_ids(text: str, vocabulary: Mapping[str, int]) -> list[int]:
    """Ids of the pieces of a text. A word with a part that has no piece is one ``[UNK]``."""
    found: list[int] = []
    for word in text.lower().split():
        pieces = _pieces(word, vocabulary)
        if pieces is not None:
            found += pieces
        elif UNKNOWN in vocabulary:
            found.append(vocabulary[UNKNOWN])
    return found


def _pieces(word: str, vocabulary: Mapping[str, int]) -> list[int] | None:
    if len(word) > MAX_WORD:
        return None
    found: list[int] = []
    start = 0
    while start < len(word):
        prefix = CONTINUES if start else ""
        ends = range(len(word), start, -1)
        end = next((end for end in ends if prefix + word[start:end] in vocabulary), None)
        if end is None:
            return None
        found.append(vocabulary[prefix + word[start:end]])
        start = end
    return found
