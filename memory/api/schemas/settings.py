"""Shapes of ``/api/settings``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, create_model

from memory.api.schemas.base import WHOLE, Shape, Strict, Text, TypeName
from memory.services.drafts import json_problem
from memory.setting_texts import is_endpoint, is_model_name
from memory.stored_settings import (
    MAX_WEIGHT,
    MEMORY_FIELDS,
    EndpointProtocol,
    FloorName,
    FusionName,
    ListName,
    RerankKind,
    RerankProtocol,
    SourceName,
    StoreName,
    StrategyName,
)

Days = Annotated[int, Field(ge=1, le=365), WHOLE]


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
    max_tokens: Annotated[int, Field(ge=0, le=16_000), WHOLE] | None = None
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


_OUT: Mapping[str, Any] = {
    "flag": bool,
    "integer": int,
    "fraction": float,
    "text": str | None,
    "texts": list[str],
    "map": dict[str, Any],
    "days": dict[str, int],
    "weights": dict[str, float],
    "model": str,
    "port": int,
}


def _out_fields() -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for entry in MEMORY_FIELDS:
        if entry.kind == "secret":
            fields |= {f"has_{entry.name}": (bool, ...), f"{entry.name}_masked": (str | None, ...)}
            continue
        shape = _OUT.get(entry.kind) or Literal[entry.choices]
        if entry.kind == "floor":
            shape = float | shape
        elif entry.kind == "choice" and entry.default is None:
            shape = shape | None
        fields[_name(entry.api)] = (shape, ...)
    return fields


def _name(api: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in api)


MemorySettingsOut = create_model(
    "MemorySettingsOut",
    __base__=Shape,
    __doc__="The memory settings in force. Secrets only as a mask.",
    **_out_fields(),
)
