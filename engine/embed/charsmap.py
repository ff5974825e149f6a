"""Text normalisation as SentencePiece models carry it: a table of sequences and what they become.

The table (a "precompiled charsmap") is a double array of UTF-8 byte sequences, as darts-clone lays
it out, followed by the replacements, each ended by a zero byte. The longest sequence at each place
is replaced.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from engine.errors import EmbeddingFailed

TRAINER_FIELD = 3
CHARSMAP_FIELD = 2
LENGTH_DELIMITED = 2
SKIPPED = {1: 8, 5: 4}
"""Bytes of the fixed-width wire types of protobuf."""

LABEL = 0x800000FF
VALUE = 0x7FFFFFFF
LEAF = 1 << 8
FAR = 1 << 9
MOST = 18
"""Longest sequence of the tables, in characters."""

KNOWN = 1 << 16
"""How many characters and pairs are remembered before all are forgotten."""

Match = tuple[int, str]
"""How many characters were read, and what stands for them."""


class Charsmap:
    """Normalises texts. Thread-safe."""

    def __init__(self, table: bytes) -> None:
        (size,) = struct.unpack_from("<I", table)
        self._units = struct.unpack_from(f"<{size // 4}I", table, 4)
        self._texts = table[4 + size :]
        self._singles: dict[str, Match] = {}
        self._pairs: dict[str, bool] = {}

    def apply(self, text: str) -> str:
        """The text with every known sequence replaced."""
        if text.isascii() and text.isprintable():
            return text
        found: list[str] = []
        place, end = 0, len(text)
        while place < end:
            read, replaced = self._at(text, place)
            found.append(replaced)
            place += read
        return "".join(found)

    def _at(self, text: str, place: int) -> Match:
        """What stands at a place. Sequences of several characters are rare and looked for last."""
        pair = text[place : place + 2]
        goes_on = self._pairs.get(pair)
        if goes_on is None:
            goes_on = len(pair) == 2 and self._walk(pair)[1] == len(pair.encode())
            if len(self._pairs) >= KNOWN:
                self._pairs.clear()
            self._pairs[pair] = goes_on
        if goes_on:
            return self._longest(text[place : place + MOST])
        single = self._singles.get(pair[0])
        if single is None:
            single = self._longest(pair[0])
            if len(self._singles) >= KNOWN:
                self._singles.clear()
            self._singles[pair[0]] = single
        return single

    def _longest(self, text: str) -> Match:
        """The longest known sequence at the start of a text, or its first character as it is."""
        matches, _ = self._walk(text)
        if not matches:
            return 1, text[0]
        length, value = matches[-1]
        end = self._texts.index(0, value)
        return len(text.encode()[:length].decode()), self._texts[value:end].decode()

    def _walk(self, text: str) -> tuple[list[tuple[int, int]], int]:
        """Every known sequence at the start: its bytes and its value; and the bytes that led on."""
        units = self._units
        matches: list[tuple[int, int]] = []
        place = _offset(units[0])
        read = 0
        for byte in text.encode():
            place ^= byte
            unit = units[place]
            if unit & LABEL != byte:
                break
            read += 1
            place ^= _offset(unit)
            if unit & LEAF:
                matches.append((read, units[place] & VALUE))
        return matches, read


def _offset(unit: int) -> int:
    return (unit >> 10) << ((unit & FAR) >> 6)


def table_of(model: bytes) -> bytes:
    """The table inside a SentencePiece model of the old layout.

    Raises ``EmbeddingFailed`` (``model_load_failed``) when there is none.
    """
    for field, value in _fields(model):
        if field == TRAINER_FIELD:
            for inner, table in _fields(value):
                if inner == CHARSMAP_FIELD:
                    return table
    raise EmbeddingFailed("The tokenizer file has an unknown format.", code="model_load_failed")


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Length-delimited fields of one protobuf message, as (number, bytes)."""
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        wire = tag & 7
        if wire == LENGTH_DELIMITED:
            length, position = _varint(data, position)
            yield tag >> 3, data[position : position + length]
            position += length
        elif wire in SKIPPED:
            position += SKIPPED[wire]
        else:
            _, position = _varint(data, position)


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
