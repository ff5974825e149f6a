"""Tiers that answer from lists: for tests of what happens to candidates after they were found."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from engine.errors import EngineError
from engine.text.tokenize import analyzer
from engine.types import (
    Beside,
    Candidate,
    Health,
    Match,
    Passage,
    PassageKind,
    Place,
    Scope,
    Signature,
    Vector,
)

Scores = Mapping[int, float]


def passage(passage_id: int, body: str, *, parent: str = "", tokens: int = 10) -> Passage:
    """A passage of one owner; without ``parent`` it is a memory of its own."""
    return Passage(
        id=passage_id,
        kind=PassageKind.MEMORY,
        parent=parent or f"memory-{passage_id}",
        ordinal=0,
        owner=1,
        title="",
        body=body,
        meta="",
        text_hash="",
        parent_tokens=tokens,
    )


def candidates(scores: Scores, limit: int) -> list[Candidate]:
    """Candidates by score, best first."""
    ordered = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))[:limit]
    return [Candidate(key, rank, score) for rank, (key, score) in enumerate(ordered, start=1)]


class ListedKeywords:
    """A ``KeywordIndex`` that finds the same whatever is asked, or fails."""

    name = "listed"

    def __init__(self, scores: Scores, *, error: EngineError | None = None) -> None:
        self.scores, self.error = scores, error

    def ensure(self) -> None: ...
    def upsert(self, passages: Sequence[Passage]) -> None: ...
    def delete(self, ids: Collection[int]) -> None: ...
    def clear(self) -> None: ...
    def mark_current(self) -> None: ...

    def is_current(self) -> bool:
        return True

    def terms(self, query: str) -> tuple[str, ...]:
        """What the real analyzer makes of a query."""
        return tuple(analyzer("search").query_terms(query))

    def search(
        self, query: str, *, scope: Scope, limit: int, match: Match = Match.ANY
    ) -> list[Candidate]:
        """The list."""
        if self.error is not None:
            raise self.error
        return candidates(self.scores, limit)

    def count(self) -> int:
        return len(self.scores)

    def health(self) -> Health:
        return Health(True)


class ListedVectors:
    """A ``VectorStore`` that finds the same whatever is asked; remembers the languages asked in."""

    name = "listed"
    signature = Signature("local", "fake", "1", 64)

    def __init__(self, scores: Scores) -> None:
        self.scores = scores
        self.languages: list[str] = []

    def ensure(self) -> None: ...
    def delete(self, ids: Collection[int]) -> None: ...
    def drop(self) -> None: ...

    def upsert(
        self,
        vectors: Mapping[int, Vector],
        *,
        hashes: Mapping[int, str],
        languages: Mapping[int, str] | None = None,
    ) -> None: ...

    def hashes(self, ids: Collection[int]) -> Mapping[int, str]:
        return {}

    def search(
        self, vector: Vector, *, scope: Scope, limit: int, language: str = ""
    ) -> list[Candidate]:
        """The list."""
        self.languages.append(language)
        return candidates(self.scores, limit)

    def count(self) -> int:
        return len(self.scores)

    def health(self) -> Health:
        return Health(True)


class ListedPassages:
    """A ``PassageSource`` over passages and places that are given."""

    def __init__(
        self,
        passages: Sequence[Passage],
        places: Mapping[int, Place] | None = None,
        beside: Mapping[int, Beside] | None = None,
    ) -> None:
        self._passages = {one.id: one for one in passages}
        self._places = places or {}
        self._beside = beside or {}
        self.dated_ids: list[int] = []

    def load(self, ids: Collection[int]) -> Mapping[int, Passage]:
        """Those among ``ids`` that are there."""
        return {key: self._passages[key] for key in ids if key in self._passages}

    def recent(self, scope: Scope, limit: int) -> list[int]:
        """Highest ids first."""
        return sorted(self._passages, reverse=True)[:limit]

    def places(self, ids: Collection[int]) -> Mapping[int, Place]:
        """The places given; others are English and stand nowhere."""
        return {key: self._places.get(key, Place("latin", 1)) for key in ids}

    def beside(self, ids: Collection[int], scope: Scope) -> Mapping[int, Beside]:
        """The neighbours given."""
        return {key: self._beside[key] for key in ids if key in self._beside}

    def uses(self, ids: Collection[int]) -> Mapping[int, int]:
        """Nothing was ever used."""
        return {}

    def dated(self, scope: Scope, start_ms: int, end_ms: int, limit: int) -> list[int]:
        """Whatever ``dated_ids`` says."""
        return self.dated_ids[:limit]
