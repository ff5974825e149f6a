"""Cuts text into the pieces of a SentencePiece unigram model: the likeliest way by Viterbi.

In Python, and faster to have than to run: the library that reads such a model holds the
interpreter's lock for half a second (two on a busy machine) while it does, during which no other
thread answers a request, and keeps 300 MB. This needs a tenth of both. Cutting costs a few percent
of what the model behind it costs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.embed.charsmap import Charsmap
from engine.embed.e5_weights import Vocabulary

BLANK = "▁"
"""What stands for a space; every word begins with it."""

UNKNOWN_PENALTY = 10.0
"""An unknown character is that much worse than the worst piece (SentencePiece)."""

KNOWN_WORDS = 1 << 16
LONGEST_KNOWN = 24
"""Words of up to so many characters are remembered with their pieces."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Ids of a text with the special ones around, and how many belong to each word in turn."""

    ids: list[int]
    words: list[int]

    @property
    def type_ids(self) -> list[int]:
        """Which text of a pair a token belongs to: there is only one."""
        return [0] * len(self.ids)


class Unigram:
    """A tokenizer for single texts. Thread-safe. ``max_tokens`` counts the special ones."""

    def __init__(self, vocabulary: Vocabulary, charsmap: Charsmap, *, max_tokens: int) -> None:
        self.pad = vocabulary.pad
        self._around = (vocabulary.bos, vocabulary.eos)
        self._unknown = vocabulary.unk
        self._most = max_tokens - 2
        self._charsmap = charsmap
        special = {vocabulary.bos, vocabulary.eos, vocabulary.pad, vocabulary.unk}
        self._scores: dict[str, float] = {}
        self._ids: dict[str, int] = {}
        # One by one: a single call for all of them would hold the interpreter's lock too long, and
        # tuples as values would keep the garbage collector busy.
        for place, piece in enumerate(vocabulary.pieces):
            if place not in special:
                self._scores[piece] = vocabulary.scores[place]
                self._ids[piece] = place
        self._longest = _longest_by_start(self._scores)
        self._unknown_score = min(vocabulary.scores) - UNKNOWN_PENALTY
        self._known: dict[str, list[int]] = {}

    def encode(self, texts: Sequence[str]) -> list[Cut]:
        """The tokens of texts, each cut after ``max_tokens``."""
        return [self._encode(text) for text in texts]

    def marked(self, prompts: Sequence[tuple[str, int]]) -> list[tuple[Cut, list[int]]]:
        """The tokens of prompts, and the places of those that carry the text itself.

        A prompt comes with where its text begins, which is where a word does.
        """
        found = []
        for prompt, start in prompts:
            cut = self._encode(prompt)
            first = 1 + sum(cut.words[: len(prompt[:start].split())])
            # A blank at the end is a word of its own to the model, but none of the text.
            last = len(cut.ids) - (2 if cut.ids[-2] == self._ids.get(BLANK) else 1)
            found.append((cut, list(range(first, last))))
        return found

    def _encode(self, text: str) -> Cut:
        ids, words = [self._around[0]], []
        left = self._most
        for word in self._words(text):
            pieces = self._pieces(word)[:left]
            ids += pieces
            words.append(len(pieces))
            left -= len(pieces)
            if not left:
                break
        ids.append(self._around[1])
        return Cut(ids, words)

    def _words(self, text: str) -> list[str]:
        """Words with their blank in front; one more blank stands for a blank at the end."""
        blanked = self._charsmap.apply(text).replace(" ", BLANK)
        # A run of blanks is one. A text that is all blanks is one blank.
        parts = [part for part in blanked.split(BLANK) if part]
        words = [BLANK + part for part in parts]
        if blanked.endswith(BLANK):
            words.append(BLANK)
        return words

    def _pieces(self, word: str) -> list[int]:
        known = self._known.get(word)
        if known is not None:
            return known
        pieces = self._viterbi(word)
        if len(word) <= LONGEST_KNOWN:
            if len(self._known) >= KNOWN_WORDS:
                self._known.clear()
            self._known[word] = pieces
        return pieces

    def _viterbi(self, word: str) -> list[int]:
        """Ids of the pieces whose scores add up to most."""
        size = len(word)
        best: list[float | None] = [0.0] + [None] * size
        came = [0] * (size + 1)
        scores, longest = self._scores, self._longest
        for start in range(size):
            here = best[start] or 0.0
            most = longest.get(word[start : start + 2], 1)
            for end in range(start + 1, min(start + most, size) + 1):
                score = scores.get(word[start:end])
                if score is None:
                    if end > start + 1:
                        continue
                    score = self._unknown_score
                total = here + score
                held = best[end]
                if held is None or total > held:
                    best[end] = total
                    came[end] = start
        return self._path(word, came)

    def _path(self, word: str, came: Sequence[int]) -> list[int]:
        """The ids along the best path; unknown characters side by side are one token."""
        ids: list[int] = []
        end = len(word)
        while end > 0:
            start = came[end]
            place = self._ids.get(word[start:end], self._unknown)
            if place != self._unknown or not ids or ids[-1] != place:
                ids.append(place)
            end = start
        return ids[::-1]


def _longest_by_start(pieces: Mapping[str, object]) -> dict[str, int]:
    """The length of the longest piece for each first two characters."""
    longest: dict[str, int] = {}
    for piece in pieces:
        start = piece[:2]
        if len(piece) > longest.get(start, 0):
            longest[start] = len(piece)
    return longest
