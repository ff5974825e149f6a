"""Shapes of ``/api/settings/vaults``."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from engine.vault.config import MAX_DIMENSIONS
from memory.api.schemas.base import Shape, Strict, Text

NameOfService = Literal["embedding", "generation", "rerank"]
JsonMode = Literal["off", "json_object", "json_schema"]
_ProviderModel = Annotated[Text, Field(max_length=300)] | None


class VaultServicesIn(Strict):
    """PUT ``/api/settings/vaults``: what is not sent stays. ``provider/model``, or null or empty
    for none. ``revision`` is the one that was seen."""

    embedding_provider_model: _ProviderModel = None
    embedding_dimensions: Annotated[int, Field(ge=1, le=MAX_DIMENSIONS)] | None = None
    generation_provider_model: _ProviderModel = None
    generation_json_mode: JsonMode = "off"
    rerank_provider_model: _ProviderModel = None
    revision: Annotated[int, Field(ge=0, le=1_000_000_000)] | None = None


class VaultServiceOut(Shape):
    """A service in force. ``origin`` is ``config`` for ``config.toml``, which the studio cannot
    change. ``hasKey`` tells whether there is a key, or the variable is set. ``problem`` is a code
    for why it cannot be asked."""

    origin: Literal["config", "studio"]
    provider: str | None
    protocol: str | None
    model: str
    host: str | None
    dimensions: int | None
    json_mode: JsonMode | None
    api_key_env: str | None
    has_key: bool
    problem: str | None


class InForce(Shape):
    """Null where nothing of a vault is sent for it."""

    embedding: VaultServiceOut | None
    generation: VaultServiceOut | None
    rerank: VaultServiceOut | None


class VaultServicesOut(Shape):
    """What the studio keeps, and what is in force."""

    embedding_provider_model: str | None
    embedding_dimensions: int | None
    generation_provider_model: str | None
    generation_json_mode: JsonMode
    rerank_provider_model: str | None
    in_force: InForce
    revision: int


class VaultServiceTestIn(Strict):
    """POST ``/api/settings/vaults/test``."""

    service: NameOfService


class VaultServiceTestOut(Shape):
    """One call. ``code`` is that of a search or question that would fail like it; ``reason`` and
    the ``status`` of HTTP narrow it down."""

    service: NameOfService
    ok: bool
    latency_ms: float
    model: str
    host: str
    dimensions: int | None
    code: str | None
    reason: str | None
    error: str | None
    status: int | None
