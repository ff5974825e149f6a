"""Shapes of ``/api/memory/engine-status`` and ``/api/memory/embedding-providers``."""

from __future__ import annotations

from memory.api.schemas.base import Shape


class CacheFigures(Shape):
    """Hits, misses and entries of the query embedding cache; 0 for keys without ``manage``."""

    hits: int
    misses: int
    size: int


class TierOut(Shape):
    """Whether a tier serves; ``reason`` says why not, or what is not as it should be."""

    available: bool
    reason: str | None


class KeywordTier(TierOut):
    """Keyword search; ``backend`` is ``FTS5``, ``Postgres`` or what else ranks the words."""

    backend: str


class EmbeddingTier(TierOut):
    """The embedding source; all null without one."""

    source: str | None
    model: str | None
    dimensions: int | None
    cache_stats: CacheFigures


class VectorStoreTier(TierOut):
    """Where vectors are searched; ``needsReindex`` passages wait for one."""

    backend: str
    row_count: int
    needs_reindex: int


class QdrantTier(TierOut):
    """Qdrant; ``healthy`` means that it answered a search just now. ``error`` is a code."""

    enabled: bool
    healthy: bool
    latency_ms: float | None
    error: str | None


class FusionTier(TierOut):
    """How lists become one: ``scores`` or ``rrf``."""

    rule: str


class RerankTier(TierOut):
    """The reranker."""

    enabled: bool
    provider: str | None
    model: str | None


class CoverageOut(Shape):
    """How far vectors cover the passages; ``building`` is the index that is made beside it."""

    passages: int
    indexed: int
    pending: int
    failed: int
    percent: float
    signature: str | None
    building: str | None
    building_percent: float | None
    retired: str | None
    retired_percent: float | None
    retired_until: str | None


class EngineStatusOut(Shape):
    """Every tier of the engine."""

    keyword: KeywordTier
    embedding: EmbeddingTier
    vector_store: VectorStoreTier
    qdrant: QdrantTier
    fusion: FusionTier
    rerank: RerankTier
    coverage: CoverageOut
