"""The terms of a segment, sorted, in one block of bytes: searched without being read.

A dictionary of a million terms takes a hundred megabytes and a second to fill; this one is used
as it lies in a file.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from engine.columns.table import Flags, Ints

HEAD_EVERY = 16
MAX_KNOWN = 4096
"""Terms whose numbers are remembered: the words of questions come again."""


class Vocabulary:
    """Distinct terms (UTF-8) in the order of their bytes; a term's number is its place."""

    __slots__ = ("_bytes", "_heads", "_known", "_places", "_size", "blob", "ends")

    def __init__(self, blob: Flags, ends: Ints) -> None:
        """``blob``: the terms one after another. ``ends``: where each ends, after a first 0."""
        self.blob = blob
        self.ends = ends
        self._bytes = blob.data
        self._places = ends.data
        self._size = len(ends) - 1
        # Every so many words one is at hand as it is: finding the place among them is cheap.
        self._known: dict[bytes, int] = {}
        self._heads = [self._word(number) for number in range(0, self._size, HEAD_EVERY)]

    @classmethod
    def of(cls, words: Sequence[bytes]) -> Vocabulary:
        """From sorted, distinct terms."""
        ends = np.zeros(len(words) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, words), np.int64, len(words)), out=ends[1:])
        # Of bytes that own their memory: an empty buffer cannot be an array.
        return cls(np.frombuffer(b"".join(words) or b"\0", np.uint8), ends)

    def __len__(self) -> int:
        return self._size

    @property
    def nbytes(self) -> int:
        return int(self.blob.nbytes + self.ends.nbytes)

    def words(self) -> list[bytes]:
        """Every term, by number."""
        held, places = bytes(self._bytes), self.ends.tolist()
        return [held[start:end] for start, end in pairwise(places)]

    def find(self, term: bytes) -> int:
        """Number of a term, or -1."""
        number = self._known.get(term)
        if number is None:
            place = self._at(term)
            number = place if place < self._size and self._word(place) == term else -1
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            self._known[term] = number
        return number

    def beginning_with(self, prefix: bytes) -> range:
        """Numbers of the terms that begin with a prefix."""
        # No byte of UTF-8 is 0xff: it stands after everything that begins with the prefix.
        return range(self._at(prefix), self._at(prefix + b"\xff"))

    def _at(self, term: bytes) -> int:
        block = max(bisect_right(self._heads, term) - 1, 0) * HEAD_EVERY
        end = min(block + HEAD_EVERY, self._size)
        return bisect_left(range(self._size), term, block, end, key=self._word)

    def _word(self, number: int) -> bytes:
        return bytes(self._bytes[self._places[number] : self._places[number + 1]])
