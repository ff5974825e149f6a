"""The light reranker: how much of the query a passage holds, and whether it holds the phrase.

No trained model; the formula is a convention, not a probability.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.rerank.order import reordered
from engine.text.match import Matcher
from engine.text.normalize import has_unspaced
from engine.text.tokenize import Analyzer
from engine.types import Candidate, Health, Match, Passage

RANK_SHARE, COVERAGE_SHARE, PHRASE_SHARE = 0.55, 0.30, 0.15
RANK_K = 60


def light_score(rank: int, *, matched: int, terms: int, phrase: bool) -> float:
    """``0.55 · 61 / (60 + rank) + 0.30 · matched / terms + 0.15 · phrase``, at most 1.

    ``rank`` counts from 1 in the order given; without terms nothing is covered.
    """
    coverage = matched / terms if terms else 0.0
    place = (RANK_K + 1) / (RANK_K + rank)
    return RANK_SHARE * place + COVERAGE_SHARE * coverage + PHRASE_SHARE * phrase


@dataclass(frozen=True)
class LightReranker:
    """``Reranker`` named ``light``. ``analyzer`` cuts query and passages into words."""

    analyzer: Analyzer

    @property
    def name(self) -> str:
        return "light"

    def rerank(
        self, query: str, candidates: Sequence[tuple[Candidate, Passage]]
    ) -> list[Candidate]:
        """The candidates by ``light_score`` of their ranks and texts."""
        words = self.analyzer.words(query)
        phrase = Matcher(query, Match.PHRASE, self.analyzer)
        scores = [
            light_score(
                candidate.rank,
                matched=self._matched(words, _fields(passage)),
                terms=len(words),
                phrase=bool(words) and phrase.accepts(_fields(passage)),
            )
            for candidate, passage in candidates
        ]
        return reordered([candidate for candidate, _ in candidates], scores)

    def health(self) -> Health:
        """Nothing can fail."""
        return Health(True, detail={"reranker": self.name})

    def _matched(self, words: Sequence[str], fields: Sequence[str]) -> int:
        """How many words occur: those of unspaced script anywhere, others as whole terms."""
        parts = [word for word in words if has_unspaced(word)]
        found = 0
        if parts:
            texts = [self.analyzer.comparable(field) for field in fields]
            found = sum(any(part in text for text in texts) for part in parts)
        if len(parts) < len(words):
            terms = {term for field in fields for term in self.analyzer.document_terms(field)}
            found += sum(word in terms for word in words if not has_unspaced(word))
        return found


def _fields(passage: Passage) -> tuple[str, str, str]:
    return (passage.title, passage.body, passage.meta)
