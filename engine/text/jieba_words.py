"""Chinese word segmentation: rjieba, or jieba where there is no rjieba. Same cuts from both.

The dictionary is loaded on first use. ``VERSION`` names the dictionary and the rules, not the
library, because both give the same words (a test compares them).
"""

from __future__ import annotations

import importlib
import logging
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

VERSION = "jieba-0.42"

_ASCII_PIECES = re.compile(r"([a-zA-Z0-9]+(?:\.\d+)?%?)")


@dataclass(frozen=True, slots=True)
class Segmenter:
    """The two cuts that analyzers use.

    ``words(text)`` is jieba's ``cut`` with its hidden Markov model, which also guesses words that
    are in no dictionary; ``known_words(text)`` is ``cut`` without it, for Han text only.
    """

    words: Callable[[str], list[str]]
    known_words: Callable[[str], list[str]]


@lru_cache(maxsize=1)
def segmenter() -> Segmenter:
    """The segmenter of this process; takes 0.1 s (rjieba) or 1 s (jieba) the first time."""
    try:
        return rjieba_segmenter()
    except ImportError:
        return jieba_segmenter()


def rjieba_segmenter() -> Segmenter:
    """The fast one. Raises ``ImportError`` where it is not installed."""
    dictionary = importlib.import_module("rjieba").Jieba()

    def words(text: str) -> list[str]:
        return list(_as_jieba_splits(dictionary.cut(text), dictionary.has_word))

    def known_words(text: str) -> list[str]:
        return list(dictionary.cut(text, False))

    return Segmenter(words, known_words)


def jieba_segmenter() -> Segmenter:
    """The slow one, in pure Python. Raises ``ImportError`` where it is not installed."""
    with warnings.catch_warnings():
        # Its old regular expressions and pkg_resources warn on newer Pythons.
        warnings.simplefilter("ignore")
        jieba = importlib.import_module("jieba")
    jieba.setLogLevel(logging.WARNING)
    dictionary = jieba.Tokenizer()
    # jieba marshals its dictionary into the shared temporary directory and loads, unchecked,
    # whatever lies there: give it a private place that is gone afterwards.
    with tempfile.TemporaryDirectory() as private:
        dictionary.tmp_dir = private
        dictionary.initialize()

    def words(text: str) -> list[str]:
        return list(dictionary.cut(text))

    def known_words(text: str) -> list[str]:
        return list(dictionary.cut(text, HMM=False))

    return Segmenter(words, known_words)


def _as_jieba_splits(words: list[str], is_known: Callable[[str], bool]) -> Iterator[str]:
    """rjieba keeps ``Node.js`` and ``Retry-After`` whole; jieba splits what is in no dictionary."""
    for word in words:
        if len(word) > 1 and word.isascii() and not word.isalnum() and not is_known(word):
            yield from (piece for piece in _ASCII_PIECES.split(word) if piece)
        else:
            yield word
