"""Whether a passage really holds every word, or the phrase, of a query: the match modes.

Pure functions over text, so that they filter candidates of a keyword index and of a vector
store alike.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from engine.text.normalize import HAN, HANGUL, KANA, UNSPACED, has_unspaced
from engine.text.tokenize import Analyzer
from engine.types import Match

_SPACED_LETTER = rf"(?![{HAN}{KANA}{HANGUL}{UNSPACED}])[^\W_]"


@dataclass(frozen=True)
class Matcher:
    """A query made ready to test passages.

    - ``any``: every passage is accepted; whether a term occurs is the index's affair.
    - ``all``: every word occurs in some field; words of unspaced script (Chinese, Japanese,
      Korean, Thai) as any part of the text, others as whole terms of the analyzer.
    - ``phrase``: the normalised query stands in one field; where it begins or ends with a letter
      or digit of a spaced script, no such letter or digit may adjoin.
    """

    query: str
    match: Match
    analyzer: Analyzer

    @cached_property
    def words(self) -> list[str]:
        """The distinct words that mode ``all`` asks for."""
        return self.analyzer.words(self.query)

    @cached_property
    def phrase(self) -> str:
        """The query as mode ``phrase`` looks for it."""
        return self.analyzer.comparable(self.query)

    def accepts(self, fields: Sequence[str]) -> bool:
        """Whether a passage with these fields (title, body, metadata) is a hit."""
        if self.match is Match.ALL:
            return self._has_all(fields)
        if self.match is Match.PHRASE:
            return any(
                self.phrase_pattern.search(self.analyzer.comparable(field)) for field in fields
            )
        return True

    def needed_terms(self) -> list[str]:
        """Index terms that every hit surely holds; empty when the analyzer is sure of none."""
        if self.match is Match.ALL:
            return self.analyzer.needed_terms(self.words)
        return self.analyzer.phrase_terms(self.query) if self.match is Match.PHRASE else []

    def unspaced_parts(self) -> list[str]:
        """Texts that every hit holds, where terms alone could miss one; empty when they cannot."""
        wanted = self.words if self.match is Match.ALL else [self.phrase]
        return list(wanted) if all(map(has_unspaced, wanted)) else []

    def _has_all(self, fields: Sequence[str]) -> bool:
        parts = [word for word in self.words if has_unspaced(word)]
        if parts:
            texts = [self.analyzer.comparable(field) for field in fields]
            if not all(any(part in text for text in texts) for part in parts):
                return False
        if len(parts) == len(self.words):
            return True
        terms = {term for field in fields for term in self.analyzer.document_terms(field)}
        return all(has_unspaced(word) or word in terms for word in self.words)

    @cached_property
    def phrase_pattern(self) -> re.Pattern[str]:
        """What finds the phrase in a text that was made comparable."""
        before = f"(?<!{_SPACED_LETTER})" if _is_spaced_letter(self.phrase[:1]) else ""
        after = f"(?!{_SPACED_LETTER})" if _is_spaced_letter(self.phrase[-1:]) else ""
        return re.compile(before + re.escape(self.phrase) + after)


def _is_spaced_letter(character: str) -> bool:
    return character.isalnum() and not has_unspaced(character)
