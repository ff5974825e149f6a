"""Why a memory that was expected did not come back: the stage that lost it, and by how much.

The retrieval itself is run with a trace, and once more with very long lists, so that what is told
is what happened, not a second opinion.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from engine.types import MemoryType, Passage, Retrieval, Scope, Stage, StageEntry
from memory import wiring
from memory.clock import now
from memory.errors import NotFound
from memory.models import Memory
from memory.models import Passage as PassageRow
from memory.passage_reader import all_to_engine
from memory.principal import Principal
from memory.services import access, lifetimes, memories, metadata_filters
from memory.services.retrieval import (
    RetrievalView,
    RetrieveRequest,
    owners_of,
    retrieve_here,
    scope_of,
)
from memory.services.why_not_lists import (
    AFTER_LISTS,
    Followed,
    ListPlace,
    best_entry,
    list_places,
    matched_terms,
    unmatched,
)


@dataclass(frozen=True, slots=True)
class Numbers:
    """The figures of the stage that lost it; None where they mean nothing.

    ``last_rank`` and ``last_score`` are of the last one that made it; ``tokens`` is what the
    memory costs and ``left`` what the budget still had when its turn came.
    """

    rank: int | None = None
    score: float | None = None
    last_rank: int | None = None
    last_score: float | None = None
    tokens: int | None = None
    left: int | None = None

    @property
    def short_by(self) -> float | None:
        """How much was missing: tokens for a budget, else score."""
        if self.tokens is not None and self.left is not None:
            return float(self.tokens - self.left)
        if self.score is None or self.last_score is None:
            return None
        return max(0.0, self.last_score - self.score)


@dataclass(frozen=True, slots=True)
class WhyNot:
    """What became of one memory in one retrieval.

    ``stage`` and ``reason`` are codes, empty when it was found: ``scope`` (``trashed``,
    ``archived``, ``other_owner``, ``expired``, ``retention``, ``decayed``, ``other_session``,
    ``other_type``, ``filtered``), ``index`` (``not_indexed``), ``match`` (``not_all_words``,
    ``no_phrase``), ``lists`` (``no_words``, ``no_vector``, ``below_depth``, ``not_run``),
    or the name of a later stage with what it says.
    """

    memory: Memory
    request: RetrieveRequest
    found: bool = False
    rank: int | None = None
    stage: str = ""
    reason: str = ""
    numbers: Numbers = Numbers()
    lists: tuple[ListPlace, ...] = ()
    terms: tuple[str, ...] = ()
    matched: tuple[str, ...] = ()
    view: RetrievalView | None = field(default=None, repr=False)

    @property
    def missing(self) -> tuple[str, ...]:
        """Terms of the query that the memory does not hold."""
        return tuple(term for term in self.terms if term not in self.matched)


def why_not(principal: Principal, request: RetrieveRequest, memory_id: str) -> WhyNot:
    """Run a retrieval and say what became of one memory in it.

    Raises ``NotFound`` for a memory that the caller may not see, and what ``retrieve`` raises.
    """
    access.require(principal, "read")
    owners = owners_of(principal, request)
    scope = scope_of(request, owners)
    memory = _visible(principal, scope, memory_id)
    rows = list(PassageRow.objects.filter(memory=memory).order_by("ordinal"))
    view = retrieve_here(principal, replace(request, trace=True))
    told = WhyNot(memory, request, view=view)
    ids = [row.pk for row in rows]
    reason = _outside(memory, scope, ids, is_filtered=_is_filtered(memory, request))
    if reason:
        return replace(told, stage="scope", reason=reason)
    if not rows:
        return replace(told, stage="index", reason="not_indexed")
    for row in rows:
        row.memory = memory
    return _through(told, scope, all_to_engine(rows))


def _visible(principal: Principal, scope: Scope, memory_id: str) -> Memory:
    """The memory, where the caller may see it: its own, or one shared with every key."""
    try:
        return memories.get(principal, memory_id, trashed=True)
    except NotFound:
        found = _shared(memory_id) if scope.include_shared else None
        if found is None:
            raise
        return found


def _shared(memory_id: str) -> Memory | None:
    try:
        key = uuid.UUID(memory_id)
    except ValueError:
        return None
    return Memory.objects.filter(lifetimes.live(), is_shared=True, pk=key).first()


def _is_filtered(memory: Memory, request: RetrieveRequest) -> bool:
    """Whether the filter of a request leaves a memory out."""
    if not request.filters:
        return False
    matched = metadata_filters.condition(request.filters)
    return not Memory.objects.filter(matched, pk=memory.pk).exists()


def _outside(memory: Memory, scope: Scope, ids: Collection[int], *, is_filtered: bool) -> str:
    """Why a memory lies outside a scope; an empty text when it lies within."""
    if memory.trashed_at is not None:
        return "trashed"
    if memory.archived_at is not None:
        return "archived"
    is_own = scope.owners is None or memory.api_key_id in scope.owners
    if not is_own and not (scope.include_shared and memory.is_shared):
        return "other_owner"
    hidden = lifetimes.hidden_reason(memory, settings=wiring.settings(), moment=now())
    if hidden:
        return hidden
    if scope.session is not None and memory.session_id != scope.session:
        return "other_session"
    if scope.types and MemoryType(memory.type) not in scope.types:
        return "other_type"
    if ids and is_filtered:
        return "filtered"
    return "decayed" if ids and scope.excluded.issuperset(ids) else ""


def _through(told: WhyNot, scope: Scope, passages: Sequence[Passage]) -> WhyNot:
    """Follow the passages of a memory that is within the scope through the stages."""
    view = told.view
    if view is None or view.retrieval.trace is None:
        raise ValueError("the retrieval was run without a trace")
    retrieval, trace = view.retrieval, view.retrieval.trace
    ids = frozenset(passage.id for passage in passages)
    matched = matched_terms(trace.terms, passages)
    followed = Followed(told.request, retrieval, scope, passages, matched)
    told = replace(told, terms=trace.terms, matched=matched, lists=list_places(followed))
    hit = next((hit for hit in retrieval.hits if hit.passage.id in ids), None)
    if hit is not None:
        return replace(told, found=True, rank=hit.rank)
    later = [stage for stage in trace.stages if stage.name in AFTER_LISTS]
    for place, stage in enumerate(later):
        entry = _dropped(stage, ids)
        if entry is not None:
            numbers = _numbers(retrieval, later[: place + 1], ids, entry)
            name, reason = _blamed(told, later[:place], stage, entry, ids)
            return replace(told, stage=name, reason=reason, numbers=numbers)
    return _never_listed(told, passages)


def _never_listed(told: WhyNot, passages: Sequence[Passage]) -> WhyNot:
    """The memory was in no list, or left out by a match mode after one."""
    if reason := unmatched(told.request, passages):
        return replace(told, stage="match", reason=reason)
    reasons = [place.reason for place in told.lists if place.reason]
    for reason in ("below_depth", "no_vector", "no_words"):
        if reason in reasons:
            nearest = next(place for place in told.lists if place.reason == reason)
            numbers = Numbers(nearest.rank, nearest.score, nearest.depth, nearest.last_score)
            return replace(told, stage="lists", reason=reason, numbers=numbers)
    return replace(told, stage="lists", reason=reasons[0] if reasons else "below_depth")


def _dropped(stage: Stage, ids: Collection[int]) -> StageEntry | None:
    """The entry that says a memory was lost here: no other piece of it may have come through."""
    entries = [entry for entry in stage.entries if entry.passage_id in ids]
    lost = [entry for entry in entries if entry.dropped and entry.dropped != "same_memory"]
    return lost[0] if lost and all(entry.dropped for entry in entries) else None


def _blamed(
    told: WhyNot, before: Sequence[Stage], stage: Stage, entry: StageEntry, ids: Collection[int]
) -> tuple[str, str]:
    """The stage at fault: a rerank that moved the memory over the limit, else the one it left."""
    if stage.name == "limit":
        ranks = {s.name: e.rank for s in before if (e := best_entry(s, ids)) is not None}
        before_rerank = ranks.get("fuse") or ranks.get("collapse")
        after = ranks.get("rerank")
        if before_rerank and after and before_rerank <= told.request.limit < after:
            return "rerank", "reranked_below"
    return stage.name, entry.dropped


def _numbers(
    retrieval: Retrieval, stages: Sequence[Stage], ids: Collection[int], entry: StageEntry
) -> Numbers:
    stage = stages[-1]
    if stage.name == "budget":
        return _budget_numbers(retrieval, stage, ids)
    if stage.name == "limit":
        ranked = [s for s in stages if any(e.rank for e in s.entries if e.passage_id in ids)]
        if not ranked:
            return Numbers()
        own = best_entry(ranked[-1], ids)
        last = _at_rank(ranked[-1], retrieval.query.limit)
        return Numbers(
            own.rank if own else None,
            own.score if own else None,
            retrieval.query.limit,
            last.score if last else None,
        )
    if stage.name == "floor":
        return Numbers(score=entry.score, last_score=_floor_of(stage))
    kept = [e for e in stage.entries if not e.dropped and e.score is not None]
    last = min(kept, key=lambda e: e.score or 0.0, default=None)
    return Numbers(
        entry.rank, entry.score, last.rank if last else None, last.score if last else None
    )


def _floor_of(stage: Stage) -> float | None:
    """The floor, from a note such as ``0.712 / 0.800``."""
    try:
        return float(stage.note.rpartition("/")[2])
    except ValueError:
        return None


def _budget_numbers(retrieval: Retrieval, stage: Stage, ids: Collection[int]) -> Numbers:
    left = retrieval.query.max_tokens
    for place, entry in enumerate(stage.entries, start=1):
        if entry.passage_id in ids:
            row = PassageRow.objects.select_related("memory").get(pk=entry.passage_id)
            tokens = row.memory.tokens if row.memory else None
            return Numbers(rank=place, tokens=tokens, left=left)
        left -= int(entry.score or 0)
    return Numbers()


def _at_rank(stage: Stage, rank: int) -> StageEntry | None:
    return next((e for e in stage.entries if e.rank == rank and not e.dropped), None)
