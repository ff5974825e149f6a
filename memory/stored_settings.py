"""The settings as a frozen value: one table of fields with their defaults and bounds, and the
reading of the stored row.

Names, bounds, defaults and database keys are those of the first seed; the last rows are ours.
Reading never fails: what is stored wrongly counts as the default (numbers are clamped).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeGuard, get_args

from memory.setting_texts import is_model_name

StrategyName = Literal["recent", "semantic", "hybrid"]
SourceName = Literal["remote", "static", "transformers", "auto"]
StoreName = Literal["auto", "in-process", "sqlite-vec", "pgvector", "qdrant"]
FusionName = Literal["scores", "rrf"]
ListName = Literal["keyword", "vector"]
RerankKind = Literal["none", "light", "late", "cross-encoder", "remote"]
RerankProtocol = Literal["seed", "cohere", "jina", "voyage", "tei"]
EndpointProtocol = Literal["compatible", "gemini", "cohere", "voyage", "jina", "azure"]
FloorName = Literal["off", "auto"]
QuantizationName = Literal["none", "int8", "binary"]
MAX_TOKENS: Final = 16_000
RETENTION_DAYS: Final = (1, 365)
MAX_WEIGHT: Final = 10.0
DEFAULT_MODEL: Final = "multilingual-e5-small"

Kind = Literal[
    "flag",
    "integer",
    "fraction",
    "choice",
    "text",
    "texts",
    "map",
    "days",
    "weights",
    "floor",
    "model",
    "secret",
    "port",
]


@dataclass(frozen=True, slots=True)
class Field:
    """One setting: attribute, API name, database key, kind, default and bounds."""

    name: str
    api: str
    key: str
    kind: Kind
    default: Any
    low: int = 0
    high: int = 0
    choices: tuple[str, ...] = ()


FIELDS: Final = (
    Field("enabled", "enabled", "memoryEnabled", "flag", False),
    Field("max_tokens", "maxTokens", "memoryMaxTokens", "integer", 2000, 0, MAX_TOKENS),
    Field("retention_days", "retentionDays", "memoryRetentionDays", "integer", 30, *RETENTION_DAYS),
    Field(
        "strategy", "strategy", "memoryStrategy", "choice", "hybrid", choices=get_args(StrategyName)
    ),
    Field("skills_enabled", "skillsEnabled", "skillsEnabled", "flag", True),
    Field(
        "embedding_source",
        "embeddingSource",
        "memoryEmbeddingSource",
        "choice",
        "auto",
        choices=get_args(SourceName),
    ),
    Field(
        "embedding_provider_model",
        "embeddingProviderModel",
        "memoryEmbeddingProviderModel",
        "text",
        None,
    ),
    Field(
        "transformers_enabled", "transformersEnabled", "memoryTransformersEnabled", "flag", False
    ),
    Field("static_enabled", "staticEnabled", "memoryStaticEnabled", "flag", False),
    Field("rerank_enabled", "rerankEnabled", "memoryRerankEnabled", "flag", False),
    Field(
        "rerank_provider_model", "rerankProviderModel", "memoryRerankProviderModel", "text", None
    ),
    Field(
        "vector_store",
        "vectorStore",
        "memoryVectorStore",
        "choice",
        "auto",
        choices=get_args(StoreName),
    ),
    Field("primary_backend", "primaryBackend", "memoryPrimaryBackend", "text", "sqlite"),
    Field("fallback_backends", "fallbackBackends", "memoryFallbackBackends", "texts", ()),
    Field("backend_configs", "backendConfigs", "memoryBackendConfigs", "map", {}),
    Field("custom_base_url", "customBaseUrl", "memoryEmbeddingCustomBaseUrl", "text", None),
    Field("custom_model_id", "customModelId", "memoryEmbeddingCustomModelId", "text", None),
    Field("custom_api_key", "customApiKey", "memoryEmbeddingCustomApiKey", "secret", ""),
    Field("auto_summarize", "autoSummarize", "memoryAutoSummarize", "flag", False),
    Field("local_model", "localModel", "memoryLocalModel", "model", DEFAULT_MODEL),
    Field(
        "custom_protocol",
        "customProtocol",
        "memoryEmbeddingCustomProtocol",
        "choice",
        "compatible",
        choices=get_args(EndpointProtocol),
    ),
    Field("retention_by_type", "retentionDaysByType", "memoryRetentionDaysByType", "days", {}),
    Field("fusion", "fusion", "memoryFusion", "choice", "scores", choices=get_args(FusionName)),
    Field(
        "fusion_weights",
        "fusionWeights",
        "memoryFusionWeights",
        "weights",
        {},
        choices=get_args(ListName),
    ),
    Field(
        "rerank_kind",
        "rerankKind",
        "memoryRerankKind",
        "choice",
        None,
        choices=get_args(RerankKind),
    ),
    Field(
        "rerank_protocol",
        "rerankProtocol",
        "memoryRerankProtocol",
        "choice",
        "seed",
        choices=get_args(RerankProtocol),
    ),
    Field("rerank_base_url", "rerankBaseUrl", "memoryRerankBaseUrl", "text", None),
    Field("rerank_api_key", "rerankApiKey", "memoryRerankApiKey", "secret", ""),
    Field("recency_weight", "recencyWeight", "memoryRecencyWeight", "fraction", 0.0),
    Field("use_weight", "useWeight", "memoryUseWeight", "fraction", 0.0),
    Field(
        "relevance_floor",
        "relevanceFloor",
        "memoryRelevanceFloor",
        "floor",
        "auto",
        choices=get_args(FloorName),
    ),
    Field("mcp_seed_names", "mcpSeedNames", "memoryMcpSeedNames", "flag", False),
    Field("qdrant_enabled", "enabled", "qdrantEnabled", "flag", False),
    Field("qdrant_host", "host", "qdrantHost", "text", ""),
    Field("qdrant_port", "port", "qdrantPort", "port", 6333),
    Field("qdrant_collection", "collection", "qdrantCollection", "text", "omniroute_memory"),
    Field(
        "qdrant_embedding_model",
        "embeddingModel",
        "qdrantEmbeddingModel",
        "text",
        "openai/text-embedding-3-small",
    ),
    Field(
        "qdrant_quantization",
        "quantization",
        "qdrantQuantization",
        "choice",
        "none",
        choices=get_args(QuantizationName),
    ),
    Field("qdrant_api_key", "apiKey", "qdrantApiKey", "secret", ""),
    Field("qdrant_vector_size", "vectorSize", "qdrantVectorSize", "integer", 1536, 1, 65536),
    Field(
        "qdrant_ef_construct", "hnswEfConstruct", "qdrantHnswEfConstruct", "integer", 128, 4, 4096
    ),
)
QDRANT_FIELDS: Final = tuple(entry for entry in FIELDS if entry.name.startswith("qdrant_"))
SOURCE_FIELDS: Final = tuple(
    entry
    for entry in FIELDS
    if entry.name
    in (
        "embedding_source",
        "embedding_provider_model",
        "local_model",
        "static_enabled",
        "custom_base_url",
        "custom_model_id",
        "custom_api_key",
        "custom_protocol",
    )
)
"""The settings that choose the embedding source."""
MEMORY_FIELDS: Final = tuple(entry for entry in FIELDS if entry not in QDRANT_FIELDS)


@dataclass(frozen=True, slots=True)
class Settings:
    """Normalised settings. Secrets are kept sealed (see ``memory.secretbox``)."""

    enabled: bool
    max_tokens: int
    retention_days: int
    strategy: str
    skills_enabled: bool
    embedding_source: str
    embedding_provider_model: str | None
    transformers_enabled: bool
    static_enabled: bool
    rerank_enabled: bool
    rerank_provider_model: str | None
    vector_store: str
    primary_backend: str
    fallback_backends: tuple[str, ...]
    backend_configs: Mapping[str, Any]
    custom_base_url: str | None
    custom_model_id: str | None
    custom_api_key: str
    auto_summarize: bool
    local_model: str
    custom_protocol: str
    retention_by_type: Mapping[str, int]
    fusion: str
    fusion_weights: Mapping[str, float]
    rerank_kind: str | None
    rerank_protocol: str
    rerank_base_url: str | None
    rerank_api_key: str
    recency_weight: float
    use_weight: float
    relevance_floor: float | str
    mcp_seed_names: bool
    qdrant_enabled: bool
    qdrant_host: str
    qdrant_port: int
    qdrant_collection: str
    qdrant_embedding_model: str
    qdrant_quantization: str
    qdrant_api_key: str
    qdrant_vector_size: int
    qdrant_ef_construct: int

    def days_for(self, memory_type: str) -> int:
        """How many days rows of a type are kept in view."""
        return self.retention_by_type.get(memory_type, self.retention_days)

    def weight_of(self, name: str) -> float | None:
        """What one list counts in the fusion; None where the rule's own weight holds."""
        return self.fusion_weights.get(name)

    @property
    def has_endpoint(self) -> bool:
        """Whether an embeddings endpoint of its own is set, which stands before any provider."""
        return bool(self.custom_base_url and self.custom_model_id)

    @property
    def reranker(self) -> str:
        """The reranker that is to run, one of ``RerankKind``.

        A client of the first system only switches ``rerankEnabled`` on: with a model it means a
        service, without one the light reranker.
        """
        if not self.rerank_enabled:
            return "none"
        return self.rerank_kind or ("remote" if self.rerank_provider_model else "light")


def normalise(stored: Mapping[str, Any]) -> Settings:
    """Settings from stored values; never raises."""
    return Settings(**read(FIELDS, stored))


def read(fields: Iterable[Field], stored: Mapping[str, Any]) -> dict[str, Any]:
    """What stored values say of some fields, by attribute; never raises."""
    return {entry.name: _READERS[entry.kind](entry, stored.get(entry.key)) for entry in fields}


def _flag(entry: Field, value: Any) -> bool:
    return value if isinstance(value, bool) else bool(entry.default)


def _integer(entry: Field, value: Any) -> int:
    if not _is_number(value):
        return int(entry.default)
    # Half rounds up, as JavaScript's Math.round does.
    return min(entry.high, max(entry.low, math.floor(value + 0.5)))


def _port(entry: Field, value: Any) -> int:
    """A number, or one that was stored as a text; one that no port has is told when it is used."""
    if isinstance(value, str) and _PORT_TEXT.fullmatch(value.strip()):
        value = float(value)
    return math.floor(value + 0.5) if _is_number(value) else int(entry.default)


_PORT_TEXT: Final = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")


def _fraction(entry: Field, value: Any) -> float:
    return min(1.0, max(0.0, float(value))) if _is_number(value) else float(entry.default)


_HUGE: Final = 1e300


def _is_number(value: Any) -> TypeGuard[float]:
    # A comparison, because an integer may be too large to become a float.
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and -_HUGE < value < _HUGE


def _choice(entry: Field, value: Any) -> str | None:
    default: str | None = entry.default
    return value if isinstance(value, str) and value in entry.choices else default


def _floor(entry: Field, value: Any) -> float | str:
    """A cosine below which nothing counts as relevant, or one of the words."""
    if _is_number(value):
        return min(1.0, max(-1.0, float(value)))
    return _choice(entry, value) or str(entry.default)


def _model(entry: Field, value: Any) -> str:
    return value if isinstance(value, str) and is_model_name(value) else str(entry.default)


def _weights(entry: Field, value: Any) -> dict[str, float]:
    return {
        name: min(MAX_WEIGHT, max(0.0, float(weight)))
        for name, weight in _map(entry, value).items()
        if name in entry.choices and _is_number(weight)
    }


def _text(entry: Field, value: Any) -> str | None:
    if isinstance(value, str) and value.strip():
        return value.strip()
    default: str | None = entry.default
    return default


def _texts(_entry: Field, value: Any) -> tuple[str, ...]:
    return tuple(x for x in value if isinstance(x, str)) if isinstance(value, list) else ()


def _map(_entry: Field, value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, dict) else {}


def _days(_entry: Field, value: Any) -> dict[str, int]:
    low, high = RETENTION_DAYS
    bounds = Field("days", "", "", "integer", None, low, high)
    return {
        name: _integer(bounds, days)
        for name, days in _map(bounds, value).items()
        if isinstance(days, int) and not isinstance(days, bool)
    }


def _secret(_entry: Field, value: Any) -> str:
    return value if isinstance(value, str) else ""


_READERS: Final[Mapping[Kind, Callable[[Field, Any], Any]]] = {
    "flag": _flag,
    "integer": _integer,
    "fraction": _fraction,
    "choice": _choice,
    "text": _text,
    "texts": _texts,
    "map": _map,
    "days": _days,
    "weights": _weights,
    "floor": _floor,
    "model": _model,
    "secret": _secret,
    "port": _port,
}
