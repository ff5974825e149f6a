"""Shapes of ``/api/providers`` and of the list of embedding models."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from engine.providers.speech import ProviderProtocol
from memory.api.schemas.base import NonEmpty, Shape, Strict, Text, Whole

Name = Annotated[Text, Field(max_length=60)]
Address = Annotated[Text, Field(max_length=2048)]
Protocol = ProviderProtocol | Literal[""]
Models = Annotated[list[Annotated[Text, Field(max_length=200)]], Field(max_length=200)]


class EmbeddingModelOut(Shape):
    """A model as settings name it; ``dimensions`` is null until the first answer tells it."""

    id: str
    name: str
    dimensions: int | None


class EmbeddingProviderOut(Shape):
    """Who has embedding models, and whether it could be asked now."""

    provider: str
    has_key: bool
    models: list[EmbeddingModelOut]


class EmbeddingProvidersOut(Shape):
    """Everyone who has embedding models, those that can be asked first."""

    providers: list[EmbeddingProviderOut]


class ProviderIn(Strict):
    """A provider to add. A blank ``baseUrl`` or ``protocol`` is that of the kind."""

    name: Name
    kind: NonEmpty = "compatible"
    base_url: Address = ""
    protocol: Protocol = ""
    api_key: Annotated[Text, Field(max_length=4096)] = ""
    api_key_env: Annotated[Text, Field(max_length=200)] = ""
    models: Models = Field(default_factory=list)
    enabled: bool = True


class ProviderChanges(Strict):
    """Any of the fields; an empty ``apiKey`` removes the key. ``revision`` guards against others'
    changes."""

    name: Name | None = None
    kind: NonEmpty | None = None
    base_url: Address | None = None
    protocol: Protocol | None = None
    api_key: Annotated[Text, Field(max_length=4096)] | None = None
    api_key_env: Annotated[Text, Field(max_length=200)] | None = None
    models: Models | None = None
    enabled: bool | None = None
    revision: Whole | None = None


class ProviderOrderIn(Strict):
    """Ids or names in their new order; the others follow as they were."""

    ids: Annotated[list[NonEmpty], Field(max_length=200)]


class ProviderTestIn(Strict):
    """Which embedding model to try, instead of the one in the settings or of the catalogue."""

    model: Annotated[NonEmpty, Field(max_length=200)] | None = None


class ProviderUses(Shape):
    """What a provider can do, or is used for."""

    chat: bool
    embedding: bool
    rerank: bool


class ProviderUsed(ProviderUses):
    """``vaults``: whether a service of vaults is one of it."""

    vaults: bool


class ProviderOut(Shape):
    """One provider; never its key.

    ``origin`` tells where it is set up; what is ``readOnly`` is changed there. ``fixed`` are fields
    that variables set. ``problems`` says by field why it cannot be used. ``can`` is what it
    could do; ``usedFor`` what it does: chats while it is on, the rest as the settings say.
    """

    id: str
    name: str
    kind: str
    title: str
    base_url: str
    protocol: str
    models: list[str]
    enabled: bool
    has_key: bool
    needs_key: bool
    api_key_masked: str | None
    api_key_env: str | None
    origin: Literal["environment", "config", "studio"]
    read_only: bool
    fixed: list[str]
    problems: dict[str, str]
    can: ProviderUses
    used_for: ProviderUsed
    revision: int | None
    created_at: str | None
    updated_at: str | None


class ProviderList(Shape):
    """Every provider in the order in which they are asked."""

    data: list[ProviderOut]


class CatalogueModelOut(Shape):
    """What is known of an embedding model; null where it is not."""

    id: str
    dimensions: int | None
    choices: list[int]
    max_tokens: int | None


class ServiceOut(Shape):
    """A kind of provider. ``apiKeyEnv`` is the variable that its own clients read."""

    kind: str
    title: str
    base_url: str
    protocol: str
    needs_key: bool
    api_key_env: str
    can: ProviderUses
    embedding_models: list[CatalogueModelOut]
    rerank_models: list[str]
    batch_texts: int | None
    batch_tokens: int | None


class CatalogueOut(Shape):
    """Every kind."""

    data: list[ServiceOut]


class ProviderCheckOut(Shape):
    """One call that was really made. ``code`` is stable, ``error`` is for people."""

    what: Literal["models", "embedding", "rerank"]
    ok: bool
    latency_ms: float
    model: str | None
    dimensions: int | None
    count: int | None
    code: str | None
    error: str | None


class ProviderTestOut(Shape):
    """Whether every call went well; none could be made when ``checks`` is empty."""

    ok: bool
    checks: list[ProviderCheckOut]
