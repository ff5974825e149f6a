"""Shapes of ``/api/settings/qdrant``."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from memory.api.schemas.base import WHOLE, NonEmpty, Shape, Strict, Text
from memory.stored_settings import QuantizationName


class QdrantSettingsIn(Strict):
    """PUT ``/api/settings/qdrant``; an empty ``apiKey`` removes the key."""

    enabled: bool | None = None
    host: Text | None = None
    port: Annotated[int, Field(ge=1, le=65535), WHOLE] | None = None
    collection: NonEmpty | None = None
    embedding_model: NonEmpty | None = None
    quantization: QuantizationName | None = None
    api_key: Text | None = None


class QdrantHealthOut(Shape):
    """Whether Qdrant answers a real search; ``error`` is a code.

    ``behind`` counts changes that are not there yet. Without a collection of ours a small one was
    made for the test.
    """

    ok: bool
    latency_ms: float
    error: str | None = None
    message: str | None = None
    collection: str | None = None
    points: int | None = None
    dimensions: int | None = None
    behind: int | None = None


class QdrantSettingsOut(Shape):
    """The Qdrant settings; never the key itself.

    ``activeEmbeddingModel`` is set when the vectors in Qdrant come from another model than
    ``embeddingModel`` names: there is one signature for every store.
    """

    enabled: bool
    host: str
    port: int
    collection: str
    embedding_model: str
    quantization: str
    has_api_key: bool
    api_key_masked: str | None
    active_embedding_model: str | None
    probe: QdrantHealthOut | None = None


class QdrantSearchIn(Strict):
    """POST ``/api/settings/qdrant/search``."""

    query: NonEmpty
    top_k: Annotated[int, Field(ge=1, le=50), WHOLE] = 5


class QdrantPayload(Shape):
    """The memory a point belongs to."""

    memory_id: str
    api_key_id: str
    session_id: str
    type: str
    key: str
    content: str


class QdrantResult(Shape):
    """One memory found, with the cosine of its best passage."""

    id: str
    score: float
    payload: QdrantPayload


class QdrantSearchOut(Shape):
    """What Qdrant alone finds, best first."""

    ok: bool
    latency_ms: float
    error: str | None = None
    message: str | None = None
    results: list[QdrantResult]


class QdrantCleanupOut(Shape):
    """How many points were removed: of expired memories, and of those that are no more."""

    ok: bool
    deleted_count: int
    expired_count: int
    stray_count: int
    retention_days: int
    error: str | None = None
    message: str | None = None


class ModelChoice(Shape):
    """One embedding model to choose."""

    value: str
    label: str


class ModelChoices(Shape):
    """Embedding models that a Qdrant collection may name."""

    models: list[ModelChoice]
