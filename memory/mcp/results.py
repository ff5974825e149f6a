"""Structured results of the tools, and how rows and retrievals become them."""

from __future__ import annotations

from typing import Any, Final

from pydantic import Field

from engine.text.tokens import cut_to_tokens
from engine.types import Hit, Tier
from memory.clock import iso
from memory.mcp.shapes import Result
from memory.models import Memory
from memory.services import why_not_text
from memory.services.degraded import explain
from memory.services.exchange import memory_json
from memory.services.retrieval import RetrievalView
from memory.services.why_not import WhyNot

_STRATEGY_OF: Final = {
    Tier.KEYWORD: "exact",
    Tier.VECTOR: "semantic",
    Tier.HYBRID: "hybrid",
    Tier.RECENT: "recent",
    Tier.BACKEND: "backend",
}


class FoundMemory(Result):
    """One hit, best first. ``truncated``: only the beginning fitted the budget."""

    id: str
    key: str
    type: str
    content: str
    session_id: str
    created_at: str
    occurred_at: str | None = None
    score: float | None = None
    tokens: int
    truncated: bool = False


class Found(Result):
    """What a search found; ``note`` says when a part of the search could not run."""

    memories: list[FoundMemory]
    count: int
    total_tokens: int
    strategy_used: str
    empty_reason: str | None = None
    note: str | None = None


class WholeMemory(Result):
    """A memory with everything that is kept of it."""

    id: str
    api_key_id: str
    api_key_name: str
    session_id: str
    type: str
    key: str
    content: str
    metadata: dict[str, Any]
    created_at: str
    updated_at: str
    expires_at: str | None = None
    occurred_at: str | None = None
    archived_at: str | None = None
    pinned: bool
    shared: bool
    revision: int
    tokens: int


class One(Result):
    """One memory."""

    memory: WholeMemory


class Changed(One):
    """A memory after a change, and what was done."""

    message: str


class Added(Changed):
    """A stored memory; ``created`` is false when one with the key was updated."""

    created: bool


class Deleted(Result):
    """A memory that is in the trash now."""

    id: str
    message: str


class Cleared(Result):
    """How many memories are in the trash now."""

    deleted_count: int
    message: str


class Place(Result):
    """Where one list had the memory."""

    name: str
    rank: int | None = None
    score: float | None = None
    message: str


class Why(Result):
    """What became of a memory in a search, and what would bring it."""

    memory_id: str
    found: bool
    rank: int | None = None
    stage: str | None = None
    reason: str | None = None
    message: str
    hints: list[str]
    short_by: float | None = None
    lists: list[Place] = Field(default_factory=list)
    missing_terms: list[str] = Field(default_factory=list)


def whole(memory: Memory) -> WholeMemory:
    """A row as a client sees it."""
    return WholeMemory.model_validate(memory_json(memory))


def found(view: RetrievalView) -> Found:
    """A retrieval as a client sees it."""
    retrieval = view.retrieval
    hits = [_hit(hit, view.memories[hit.passage.parent]) for hit in retrieval.hits]
    return Found(
        memories=hits,
        count=len(hits),
        total_tokens=sum(hit.tokens for hit in hits),
        strategy_used=_STRATEGY_OF[retrieval.tier],
        empty_reason=view.empty_reason or None,
        note="; ".join(explain(item) for item in retrieval.degraded) or None,
    )


def why(told: WhyNot) -> Why:
    """The answer of the why-not probe."""
    return Why(
        memory_id=str(told.memory.pk),
        found=told.found,
        rank=told.rank,
        stage=told.stage or None,
        reason=told.reason or None,
        message=why_not_text.sentence(told),
        hints=[message for _code, message in why_not_text.hints(told)],
        short_by=told.numbers.short_by,
        lists=[
            Place(
                name=place.name,
                rank=place.rank,
                score=place.score,
                message=why_not_text.place_text(place),
            )
            for place in told.lists
        ],
        missing_terms=list(told.missing),
    )


def _hit(hit: Hit, memory: Memory) -> FoundMemory:
    return FoundMemory(
        id=str(memory.pk),
        key=memory.key,
        type=memory.type,
        content=cut_to_tokens(memory.content, hit.tokens) if hit.is_truncated else memory.content,
        session_id=memory.session_id,
        created_at=iso(memory.created_at) or "",
        occurred_at=iso(memory.occurred_at),
        score=hit.score,
        tokens=hit.tokens,
        truncated=hit.is_truncated,
    )
