"""Made-up memories and questions about them: the same for the same size, every one different.

Half of the memories are English, a quarter Chinese, a quarter Japanese. Function words come with
the frames of the sentences, content words by Zipf's law. One owner has nine of ten memories, the
rest is a long tail.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.speed import frames, vocabulary
from benchmarks.speed.vocabulary import Vocabulary

BLOCK = 5_000
"""Memories of one step of the generator; part of what makes the text the same."""

SEED = 20_261_130
SESSION = 25
"""Memories of one conversation; they share a direction in the vector space as well."""

TAIL_ROWS = 50
"""Memories of an average small owner."""

BIGGEST = "biggest"
SMALL = "owner-1"
TYPES = ("factual", "factual", "episodic", "episodic", "procedural", "semantic")
LANGUAGES = ("en", "zh", "en", "ja")


@dataclass(frozen=True, slots=True)
class Note:
    """One memory before it is one, and the words that a question about it may use."""

    number: int
    language: str
    owner: str
    record: dict[str, Any]
    slots: dict[str, str]


class Words:
    """A vocabulary that is drawn from by Zipf's law with exponent 1."""

    def __init__(self, words: Vocabulary) -> None:
        self.words = words
        self._laws = {size: _law(size) for size in {len(words.nouns), len(words.verbs)}}
        self._laws[len(words.adjectives)] = _law(len(words.adjectives))

    def slots(self, rng: np.random.Generator, count: int) -> list[dict[str, str]]:
        """Words for the slots of ``count`` memories."""
        words = self.words
        columns = {name: self._draw(rng, words.nouns, count) for name in frames.NOUN_SLOTS}
        columns |= {name: self._draw(rng, words.verbs, count) for name in ("v", "w")}
        columns |= {name: self._draw(rng, words.adjectives, count) for name in ("a", "b")}
        for name, choices in (
            ("who", words.people), ("other", words.people),
            ("place", words.places), ("month", words.months),
        ):  # fmt: skip
            columns[name] = [choices[i] for i in rng.integers(len(choices), size=count)]
        columns["num"] = [str(number) for number in rng.integers(2, 5000, size=count)]
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def _draw(self, rng: np.random.Generator, words: tuple[str, ...], count: int) -> list[str]:
        places = np.searchsorted(self._laws[len(words)], rng.random(count), side="right")
        return [words[place] for place in places]


def notes(count: int, share: float = 0.9) -> Iterator[list[Note]]:
    """``count`` memories in blocks; the first ``share`` of them belong to the biggest owner."""
    biggest = round(count * share)
    owners = tail_owners(count - biggest)
    for start in range(0, count, BLOCK):
        size = min(BLOCK, count - start)
        yield list(_block(start, size, [_owner(start + i, biggest, owners) for i in range(size)]))


def tail_owners(rows: int) -> list[str]:
    """The owner of each memory of the tail, in runs that grow shorter."""
    count = max(1, rows // TAIL_ROWS)
    weights = 1 / np.arange(1, count + 1)
    ends = np.round(np.cumsum(weights) / weights.sum() * rows).astype(int)
    return [f"owner-{place + 1}" for place in np.searchsorted(ends, np.arange(rows), side="right")]


def question(note: Note, choice: int) -> str:
    """A natural question that a memory answers, stop words and all."""
    asked = frames.QUESTIONS[note.language]
    return asked[choice % len(asked)].format_map(note.slots)


def number_of(key: str) -> int:
    """The number of the memory with a key."""
    return int(key.rpartition(":")[2])


@cache
def languages() -> dict[str, Words]:
    """The three languages of the memories."""
    return {
        "en": Words(vocabulary.english()),
        "zh": Words(vocabulary.chinese()),
        "ja": Words(vocabulary.japanese()),
    }


def _block(start: int, size: int, owners: list[str]) -> Iterator[Note]:
    rng = np.random.default_rng((SEED, start))
    slots = {code: iter(words.slots(rng, size)) for code, words in languages().items()}
    # Most memories are a sentence or two, some are four.
    lengths = rng.choice((1, 1, 2, 2, 3, 4), size=size)
    picks = rng.integers(1 << 30, size=(size, 4))
    for place in range(size):
        number = start + place
        code = LANGUAGES[number % len(LANGUAGES)]
        row, pick = next(slots[code]), picks[place]
        given = frames.SENTENCES[code]
        sentences = [
            given[int(pick[i] + i * 7) % len(given)].format_map(row)
            for i in range(int(lengths[place]))
        ]
        content = frames.JOINT[code].join(dict.fromkeys(sentences))
        yield Note(number, code, owners[place], _record(number, owners[place], content, row), row)


def _record(number: int, owner: str, content: str, slots: dict[str, str]) -> dict[str, Any]:
    return {
        "key": f"{slots['n1']}:{number}",
        "content": content,
        "type": TYPES[number % len(TYPES)],
        "owner": owner,
        "sessionId": f"session-{number // SESSION}",
        "metadata": {"tags": [slots["n2"]]},
    }


def _owner(number: int, biggest: int, tail: list[str]) -> str:
    return BIGGEST if number < biggest else tail[number - biggest]


def _law(size: int) -> npt.NDArray[np.float64]:
    weights = 1 / np.arange(1, size + 1)
    law: npt.NDArray[np.float64] = np.cumsum(weights) / weights.sum()
    return law
