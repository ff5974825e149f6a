"""Cutting text into the terms of a keyword index.

Two analyzers: ``seed`` is what sealed vaults use (jieba words, nothing else), ``search`` what
everything else uses (``engine.text.search_terms``). The version of an analyzer is part of the
identity of an index: terms of two versions never meet in one.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Protocol

from engine.text import jieba_words
from engine.text.normalize import fold, normalize


class Analyzer(Protocol):
    """Turns documents and queries into terms that can meet."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str:
        """Changes whenever the same text could give other terms."""
        ...

    @property
    def padding(self) -> int:
        """Filler terms an index adds to each passage, which count for its length only.

        They soften length normalisation for short passages and hardly touch long ones: BM25's
        ``b`` of 0.75 works like 0.35 on passages of 35 terms and like 0.63 on those of 200.
        """
        ...

    def document_terms(self, text: str) -> list[str]:
        """Terms of a text, repeated as often as they occur."""
        ...

    def query_terms(self, text: str) -> list[str]:
        """Distinct terms to look for, in order; empty when the text holds none."""
        ...

    def comparable(self, text: str) -> str:
        """A text as match modes compare it: folded, and characters alike where terms are."""
        ...

    def words(self, text: str) -> list[str]:
        """Distinct words of a query as a person would count them: the unit of match modes.

        A word of unspaced script stands for itself; any other is a term.
        """
        ...

    def needed_terms(self, words: list[str]) -> list[str]:
        """Terms that every document with all these words holds; empty when none is sure."""
        ...

    def phrase_terms(self, phrase: str) -> list[str]:
        """Terms that every document with this phrase holds; empty when none is sure."""
        ...


class SeedAnalyzer:
    """NFKC, case folding and jieba's cut; keeps what holds a letter, number, mark or symbol."""

    name = "seed"
    version = f"seed-1/{jieba_words.VERSION}"
    padding = 0

    def document_terms(self, text: str) -> list[str]:
        words = jieba_words.segmenter().words(fold(text))
        return [word for word in words if any(map(_says_something, word))]

    def query_terms(self, text: str) -> list[str]:
        return list(dict.fromkeys(self.document_terms(text)))

    def comparable(self, text: str) -> str:
        return normalize(text)

    def words(self, text: str) -> list[str]:
        return self.query_terms(text)

    def needed_terms(self, words: list[str]) -> list[str]:
        # A Chinese word may be part of a longer one in the document, which is another term; and
        # scores stay those of all the query's terms.
        return []

    def phrase_terms(self, phrase: str) -> list[str]:
        return []


@lru_cache(maxsize=2)
def analyzer(name: str) -> Analyzer:
    """The analyzer called ``seed`` or ``search``. Raises ``ValueError`` for another name."""
    if name == "seed":
        return SeedAnalyzer()
    if name == "search":
        from engine.text.search_terms import SearchAnalyzer

        return SearchAnalyzer()
    raise ValueError(f"no analyzer called {name!r}")


@lru_cache(maxsize=65536)
def _says_something(character: str) -> bool:
    category = unicodedata.category(character)
    return category[0] in "LNM" or category == "So"
