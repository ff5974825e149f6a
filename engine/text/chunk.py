"""Cutting a long text into overlapping chunks near paragraph and sentence ends (MS-CHUNK-1).

The unit is the code point. A text of at most ``MAX_CHARS`` is one chunk. Otherwise a cut is
looked for between ``MIN_CHARS`` (exclusive) and ``MAX_CHARS`` after the start of the chunk: the
last one of the best kind that has any, else ``MAX_CHARS``. The next chunk starts ``OVERLAP``
before the cut.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_right
from dataclasses import dataclass

MAX_CHARS = 768
MIN_CHARS = 384
OVERLAP = 128

_CLOSERS = "\"'\u2019\u201d)\\]}\u300d\u300f\uff09\u3011\u300b\u3009"
_BREAK = r"(?:\r\n|\r|\n)"
_CUTS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"{_BREAK}(?:[ \t\u3000]*{_BREAK})+",
        rf"(?:[。！？；…!?;]|\.(?=\s))+[{_CLOSERS}]*[ \t\u3000]*",
        _BREAK,
        r"[\s,:，、：]+",
    )
)
"""Kinds of cut, best first: paragraph, sentence, line, word."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a text: code points ``[start, end)``, UTF-8 bytes ``[byte_start, byte_end)``."""

    start: int
    end: int
    byte_start: int
    byte_end: int
    text: str

    @property
    def sha256(self) -> str:
        """SHA-256 of the chunk's UTF-8 bytes, in hex."""
        return hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()


def chunks(text: str) -> list[Chunk]:
    """The chunks of a text, in order; none when it holds only whitespace.

    Their ranges cover the text without gaps, and a phrase of up to ``OVERLAP`` characters lies
    whole in one of them.
    """
    if not text.strip():
        return []
    kinds = _cut_positions(text) if len(text) > MAX_CHARS else []
    found: list[Chunk] = []
    start = byte_start = 0
    while True:
        end = len(text) if len(text) - start <= MAX_CHARS else _cut(kinds, start)
        piece = text[start:end]
        byte_end = byte_start + _byte_length(piece)
        found.append(Chunk(start, end, byte_start, byte_end, piece))
        if end == len(text):
            return found
        byte_start = byte_end - _byte_length(text[end - OVERLAP : end])
        start = end - OVERLAP


def byte_range(text: str, start: int, end: int) -> tuple[int, int]:
    """Where code points ``[start, end)`` lie in the UTF-8 bytes of the text."""
    byte_start = _byte_length(text[:start])
    return byte_start, byte_start + _byte_length(text[start:end])


def _cut_positions(text: str) -> list[list[int]]:
    """Ascending cut positions, one list for each kind."""
    return [[found.end() for found in pattern.finditer(text)] for pattern in _CUTS]


def _cut(kinds: list[list[int]], start: int) -> int:
    for positions in kinds:
        index = bisect_right(positions, start + MAX_CHARS)
        if index and positions[index - 1] > start + MIN_CHARS:
            return positions[index - 1]
    return start + MAX_CHARS


def _byte_length(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
