"""Shapes of ``/api/settings``."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, Field

from memory.api.schemas.base import Strict, Text, TypeName
from memory.services.drafts import json_problem
from memory.stored_settings import (
    MAX_WEIGHT,
    EndpointProtocol,
    FloorName,
    FusionName,
    ListName,
    RerankKind,
    RerankProtocol,
    SourceName,
    StoreName,
    StrategyName,
    is_endpoint,
    is_model_name,
)

Days = Annotated[int, Field(ge=1, le=365)]


def _endpoint(value: str | None) -> str | None:
    """A base URL; a blank one is None."""
    text = (value or "").strip()
    if not text:
        return None
    if not is_endpoint(text):
        raise ValueError("an http or https URL without user name, query and fragment is needed")
    return text


def _blank_to_none(value: str | None) -> str | None:
    text = (value or "").strip()
    if len(text) > 2048:
        raise ValueError("at most 2,048 characters")
    return text or None


def _model_name(value: str | None) -> str | None:
    if value is not None and not is_model_name(value):
        raise ValueError("letters, digits and . _ - / only, at most 100")
    return value


def _storable(value: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    if problem := json_problem(value):
        raise ValueError(problem)
    return value


Configs = Annotated[dict[str, dict[str, Any]], AfterValidator(_storable)]
Endpoint = Annotated[str | None, AfterValidator(_endpoint)]
Optional = Annotated[Text | None, AfterValidator(_blank_to_none)]
Model = Annotated[Text | None, AfterValidator(_model_name)]
Weight = Annotated[float, Field(ge=0, le=MAX_WEIGHT, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Floor = Annotated[float, Field(ge=-1, le=1, allow_inf_nan=False)]


class MemorySettingsIn(Strict):
    """PUT ``/api/settings/memory``: any of the fields."""

    enabled: bool | None = None
    max_tokens: Annotated[int, Field(ge=0, le=16_000)] | None = None
    retention_days: Days | None = None
    strategy: StrategyName | None = None
    skills_enabled: bool | None = None
    embedding_source: SourceName | None = None
    embedding_provider_model: Optional = None
    transformers_enabled: bool | None = None
    static_enabled: bool | None = None
    rerank_enabled: bool | None = None
    rerank_provider_model: Optional = None
    vector_store: StoreName | None = None
    primary_backend: Text | None = None
    fallback_backends: list[Text] | None = None
    backend_configs: Configs | None = None
    custom_base_url: Endpoint = None
    custom_model_id: Optional = None
    custom_api_key: Text | None = None
    auto_summarize: bool | None = None
    custom_protocol: EndpointProtocol | None = None
    local_model: Model = None
    fusion: FusionName | None = None
    fusion_weights: dict[ListName, Weight] | None = None
    rerank_kind: RerankKind | None = None
    rerank_protocol: RerankProtocol | None = None
    rerank_base_url: Endpoint = None
    rerank_api_key: Text | None = None
    recency_weight: Share | None = None
    use_weight: Share | None = None
    relevance_floor: Floor | FloorName | None = None
    mcp_seed_names: bool | None = None
    retention_days_by_type: dict[TypeName, Days] | None = None
