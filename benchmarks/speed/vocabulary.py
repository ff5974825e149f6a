"""The words that the made-up memories are written with, most common first.

A few hundred words a language are written by hand. The long tail, which a keyword index feels
most, is made: names of syllables, Japanese compounds of two characters, and for Chinese the
dictionary of the package jieba in order of frequency.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

TAIL = 20_000
"""Made words of a language beside the written ones."""

CHINESE_NOUNS = 20_000
CHINESE_VERBS = 2_000
CHINESE_ADJECTIVES = 600


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Words of one language by what they are, most common first."""

    nouns: tuple[str, ...]
    verbs: tuple[str, ...]
    adjectives: tuple[str, ...]
    people: tuple[str, ...]
    places: tuple[str, ...]
    months: tuple[str, ...]


def english() -> Vocabulary:
    """English; the tail is names such as ``Kalvernor``."""
    written = _written("english")
    tail = [name.capitalize() for name in _mixed(written["syllables"], 3)]
    return _vocabulary(written, [*written["nouns"], *tail], written["months"])


def japanese() -> Vocabulary:
    """Japanese; the tail is compounds of two characters and katakana names."""
    written = _written("japanese")
    compounds = _mixed(list("".join(written["kanji"])), 2, TAIL // 2)
    nouns = [
        *written["nouns"],
        *compounds,
        *_mixed(list("".join(written["katakana"])), 4, TAIL // 2),
    ]
    return _vocabulary(written, nouns, [f"{month}月" for month in range(1, 13)])


def chinese() -> Vocabulary:
    """Chinese: nouns, verbs and adjectives of jieba's dictionary."""
    written = _written("chinese")
    written["verbs"] = _jieba("v", CHINESE_VERBS)
    written["adjectives"] = _jieba("a", CHINESE_ADJECTIVES)
    nouns = _jieba("n", CHINESE_NOUNS)
    return _vocabulary(written, nouns, [f"{month}月" for month in range(1, 13)])


def _vocabulary(
    written: Mapping[str, list[str]], nouns: list[str], months: list[str]
) -> Vocabulary:
    return Vocabulary(
        nouns=tuple(dict.fromkeys(nouns)),
        verbs=tuple(written["verbs"]),
        adjectives=tuple(written["adjectives"]),
        people=tuple(written["people"]),
        places=tuple(written["places"]),
        months=tuple(months),
    )


def _written(name: str) -> dict[str, list[str]]:
    """Words of a file by the headings in it."""
    path = Path(__file__).with_name("words") / f"{name}.txt"
    found: dict[str, list[str]] = {}
    heading = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            heading = line[1:].strip()
        else:
            found.setdefault(heading, []).extend(line.split())
    return found


def _mixed(parts: list[str], length: int, count: int = TAIL) -> list[str]:
    """The first ``count`` combinations of parts in an order that looks like none."""
    every = ["".join(chosen) for chosen in product(parts, repeat=length)]
    order = np.random.default_rng(len(parts)).permutation(len(every))[:count]
    return [every[place] for place in order]


def _jieba(kind: str, count: int) -> list[str]:
    """Words of two or three characters of one kind, by frequency."""
    ranked = sorted(_dictionary(kind), key=lambda entry: (-entry[1], entry[0]))
    return [word for word, _frequency in ranked[:count]]


def _dictionary(kind: str) -> Iterator[tuple[str, int]]:
    spec = importlib.util.find_spec("jieba")
    if spec is None or spec.origin is None:
        raise RuntimeError("the package jieba, whose dictionary gives the Chinese words, is absent")
    with Path(spec.origin).with_name("dict.txt").open(encoding="utf-8") as lines:
        for line in lines:
            word, frequency, tag = line.split()
            if tag == kind and 2 <= len(word) <= 3:
                yield word, int(frequency)
