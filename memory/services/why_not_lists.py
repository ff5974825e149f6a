"""Where the lists of a retrieval have a memory, however far down."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from engine.retrieve import retrieve as run
from engine.text.match import Matcher
from engine.text.tokenize import analyzer
from engine.types import Beside, Match, Passage, Place, Retrieval, Scope, Stage, StageEntry
from memory.models import VectorMark
from memory.passage_reader import PassageReader
from memory.services import embedding
from memory.services.retrieval import LOADING_WAIT_S, RetrieveRequest, query_of, tiers

WIDE: Final = 20_000
"""Candidates of the lists that are searched for the memory; beyond, no rank is told."""

AFTER_LISTS: Final = frozenset(
    ("fuse", "conversation", "priors", "collapse", "floor", "rerank", "limit", "budget")
)
BETWEEN: Final = frozenset(("embed", "match"))
"""Stages beside the lists; every stage that is named in neither set is a list."""


@dataclass(frozen=True, slots=True)
class ListPlace:
    """Where one list placed the memory.

    ``reason`` is empty when the list brought it. ``rank`` and ``score`` are None when even a list
    of ``WIDE`` candidates did not meet it; ``last_score`` is that of the last candidate of the
    ``depth`` that the list brought.
    """

    name: str
    rank: int | None
    score: float | None
    depth: int
    last_score: float | None
    reason: str = ""

    @property
    def short_by(self) -> float | None:
        """How much score was missing to come in with the last one."""
        if not self.reason or self.score is None or self.last_score is None:
            return None
        return max(0.0, self.last_score - self.score)


class _Only:
    """A passage source that knows a few passages only: a wide search reads no other."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._known = {passage.id: passage for passage in passages}
        self._reader = PassageReader()

    def load(self, ids: Collection[int]) -> Mapping[int, Passage]:
        """The known ones among some ids."""
        return {i: self._known[i] for i in ids if i in self._known}

    def recent(self, scope: Scope, limit: int) -> list[int]:
        """Newest passages, all of them."""
        return self._reader.recent(scope, limit)

    def places(self, ids: Collection[int]) -> Mapping[int, Place]:
        """Places of the known ones among some ids."""
        return self._reader.places([key for key in ids if key in self._known])

    def beside(self, ids: Collection[int], scope: Scope) -> Mapping[int, Beside]:
        """Neighbours of the known ones among some ids."""
        return self._reader.beside([key for key in ids if key in self._known], scope)

    def uses(self, ids: Collection[int]) -> Mapping[int, int]:
        """Uses of the known ones among some ids."""
        return self._reader.uses([key for key in ids if key in self._known])

    def dated(self, scope: Scope, start_ms: int, end_ms: int, limit: int) -> list[int]:
        """Passages of a span of time, all of them."""
        return self._reader.dated(scope, start_ms, end_ms, limit)


@dataclass(frozen=True, slots=True)
class Followed:
    """One retrieval with its trace, and the passages of the memory that are looked for in it."""

    request: RetrieveRequest
    retrieval: Retrieval
    scope: Scope
    passages: Sequence[Passage]
    matched: tuple[str, ...]

    @property
    def ids(self) -> frozenset[int]:
        """Ids of the passages."""
        return frozenset(passage.id for passage in self.passages)


def list_places(followed: Followed) -> tuple[ListPlace, ...]:
    """Where each list placed a memory, searching deep for those that did not bring it."""
    stages = _lists(followed.retrieval)
    is_whole = all(best_entry(stage, followed.ids) is not None for stage in stages.values())
    deep = {} if is_whole else _lists(_search_deep(followed))
    return tuple(_place(followed, stage, deep.get(name)) for name, stage in stages.items())


def _lists(retrieval: Retrieval) -> dict[str, Stage]:
    stages = retrieval.trace.stages if retrieval.trace else ()
    return {stage.name: stage for stage in stages if stage.name not in AFTER_LISTS | BETWEEN}


def _search_deep(followed: Followed) -> Retrieval:
    """The same lists, very long. Only they are looked at: fusing more changes every score."""
    reader, request = PassageReader(), followed.request
    every = tiers(reader, wait_s=LOADING_WAIT_S)
    # A match mode reads every candidate's text; without one nothing else need be read.
    source = _Only(followed.passages) if request.match is Match.ANY else reader
    query = replace(query_of(request), limit=1, trace=True)
    lists = replace(every, passages=source, depth=WIDE, floor=None, reranker=None, rerank_off=None)
    if every.fallback_stores:
        # A store elsewhere is not made for lists this long; the one here is exact.
        lists = replace(lists, store=every.fallback_stores[-1], fallback_stores=())
    return run(query, followed.scope, lists)


def _place(followed: Followed, stage: Stage, deep: Stage | None) -> ListPlace:
    last = stage.entries[-1].score if stage.entries else None
    own = best_entry(stage, followed.ids)
    if own is not None:
        return ListPlace(stage.name, own.rank, own.score, len(stage.entries), last)
    found = best_entry(deep, followed.ids) if deep else None
    rank, score = (found.rank, found.score) if found else (None, None)
    reason = _absent(followed, stage) if found is None else "below_depth"
    return ListPlace(stage.name, rank, score, len(stage.entries), last, reason)


def _absent(followed: Followed, stage: Stage) -> str:
    """Why even a long list does not hold the memory."""
    if stage.note and not stage.entries:
        return "not_run"
    if stage.name == "keyword" and not followed.matched:
        return "no_words"
    if reason := unmatched(followed.request, followed.passages):
        return reason
    index = embedding.active_index()
    waits = VectorMark.objects.filter(index=index, passage__in=followed.ids)
    return "no_vector" if stage.name == "vector" and waits.exists() else "below_depth"


def best_entry(stage: Stage, ids: Collection[int]) -> StageEntry | None:
    """The best entry of a memory in one stage."""
    own = [entry for entry in stage.entries if entry.passage_id in ids and not entry.dropped]
    return min(own, key=lambda entry: entry.rank or WIDE, default=None)


def matched_terms(terms: Sequence[str], passages: Sequence[Passage]) -> tuple[str, ...]:
    """The terms of a query that a memory holds."""
    cutter = analyzer("search")
    held = {
        term
        for passage in passages
        for text in (passage.title, passage.body, passage.meta)
        for term in cutter.document_terms(text)
    }
    return tuple(term for term in terms if term in held)


def unmatched(request: RetrieveRequest, passages: Sequence[Passage]) -> str:
    """Why no passage satisfies the match mode; an empty text when one does."""
    if request.match is Match.ANY or not request.query.strip():
        return ""
    matcher = Matcher(request.query.strip(), request.match, analyzer("search"))
    if any(matcher.accepts((p.title, p.body, p.meta)) for p in passages):
        return ""
    return "not_all_words" if request.match is Match.ALL else "no_phrase"
