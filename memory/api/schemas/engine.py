"""Shapes of retrieval, reindex, compaction and engine status."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from memory.api.schemas.base import WHOLE, NonEmpty, Shape, Strict, Text, TypeName


class PreviewIn(Strict):
    """POST ``/api/memory/retrieve-preview``."""

    query: NonEmpty
    strategy: Literal["exact", "semantic", "hybrid", "recent"] = "hybrid"
    max_tokens: Annotated[int, Field(ge=1, le=16_000), WHOLE] = 2000
    limit: Annotated[int, Field(ge=1, le=100), WHOLE] = 20
    api_key_id: Text | None = None
    all_owners: bool = False
    session_id: Text | None = None
    scope: Literal["session", "apiKey", "global"] = "apiKey"
    types: list[TypeName] = Field(default_factory=list)
    match: Literal["any", "all", "phrase"] = "any"
    trace: bool = False
    filters: dict[str, Any] | None = None


class PreviewHit(Shape):
    """One ranked memory. Scores that do not apply are null."""

    id: str
    api_key_id: str
    session_id: str
    type: str
    key: str
    content: str
    score: float
    tokens: int
    tier: str
    vec_score: float | None
    fts_score: float | None
    vec_rank: int | None
    fts_rank: int | None
    fused_score: float | None
    rerank_score: float | None
    truncated: bool


class DegradedOut(Shape):
    """A tier that did not serve, and why."""

    tier: str
    code: str
    message: str


class Resolution(Shape):
    """What ran."""

    embedding_source: str | None
    embedding_model: str | None
    vector_store: str | None
    strategy_used: str
    fusion: str | None
    rerank_applied: bool
    reranker: str | None
    fallback_reason: str | None
    degraded: list[DegradedOut]


class Nearest(Shape):
    """What came closest when nothing reached the relevance floor; ``score`` is its cosine."""

    id: str
    key: str
    score: float | None


class PreviewOut(Shape):
    """Hits, best first, and the account of what ran.

    ``emptyReason`` is null when there is a hit, else ``below_floor`` (nothing is near enough:
    ``nearest`` says what was), ``no_budget``, or ``none``.
    """

    memories: list[PreviewHit]
    empty_reason: str | None
    nearest: list[Nearest]
    resolution: Resolution
    total_tokens_used: int
    budget_max_tokens: int
    took_ms: float
    version: int = 1
    trace: dict[str, Any] | None = None


class ReindexIn(Strict):
    """POST ``/api/memory/reindex``; ``force`` does everything again."""

    force: bool = False


class ReindexOut(Shape):
    """The job that does it, and how many passages wait."""

    started: bool
    pending: int
    job_id: str


class RollbackOut(Shape):
    """The index gone back to. While it is not ``active`` yet, the job embeds what is pending."""

    success: bool = True
    signature: str
    active: bool
    pending: int
    job_id: str | None


class RetiredOut(Shape):
    """How many retired indexes were dropped."""

    success: bool = True
    dropped: int


class SummarizeIn(Strict):
    """POST ``/api/memory/summarize``. ``mode`` ``tokens`` shortens what overflows ``maxTokens``."""

    mode: Literal["age", "tokens"] = "age"
    older_than_days: Annotated[int, Field(ge=1, le=365), WHOLE] = 30
    max_tokens: Annotated[int, Field(ge=0, le=1_000_000), WHOLE] = 4000
    api_key_id: Text | None = None
    all_owners: bool = False
    session_id: Text | None = None
    dry_run: bool = False


class Candidate(Shape):
    """One memory that a compaction would touch; ``newContent`` is what it would become."""

    id: str
    api_key_id: str
    type: str
    key: str
    content: str
    tokens: int
    created_at: str
    new_content: str | None = None


class Summary(Shape):
    """The compaction of one owner: ``texts`` are exactly what is or would be stored."""

    api_key_id: str
    compaction_id: str | None = None
    summary_ids: list[str]
    texts: list[str]
    original_count: int
    tokens_saved: int


class SummarizeOut(Shape):
    """What was or would be done."""

    candidates: list[Candidate]
    total_tokens: int
    tokens_saved: int
    original_count: int
    summarized_count: int
    deleted_count: int
    summary_id: str | None
    dry_run: bool
    summaries: list[Summary]
    job_id: str | None = None


class UndoOut(Shape):
    """A compaction that was undone, and how many memories came back."""

    success: bool = True
    compaction_id: str
    restored: int
