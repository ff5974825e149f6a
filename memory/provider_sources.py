"""Providers that the settings name as ``provider/model``: what that means for embedding and
reranking."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from engine.errors import EmbeddingFailed, EngineError, RerankFailed
from engine.providers.catalogue import EmbeddingModel
from engine.providers.spec import ProviderSpec
from engine.providers.speech import SPEECH
from engine.text.template import VERSION as TEMPLATE
from memory import provider_table, secretbox
from memory.models import VectorIndex
from memory.provider_table import Entry
from memory.stored_settings import Settings

if TYPE_CHECKING:
    from engine.embed.endpoint import Endpoint
    from engine.embed.remote import RemoteSource
    from engine.net.client import HttpClient
    from engine.rerank.remote import RerankEndpoint

LOCAL: Final = "local/"
"""What stands before a local model where providers and models are listed together."""


@dataclass(frozen=True, slots=True)
class Named:
    """A provider of the table and the model of it that the settings name."""

    entry: Entry
    model: str

    @property
    def known(self) -> EmbeddingModel | None:
        """What the catalogue knows of an embedding model; only of the service's own address."""
        spec = self.entry.spec
        is_own = not spec.service.base_url or spec.url == spec.service.base_url
        return spec.service.embedding_model(self.model) if is_own else None

    @property
    def key_hash(self) -> str:
        """Tells one credential from another without holding it."""
        return hashlib.sha256(self.entry.key.encode()).hexdigest()


def split(provider_model: str | None) -> tuple[str, str] | None:
    """Name and model of ``provider/model``; None for anything else."""
    name, slash, model = (provider_model or "").partition("/")
    return (name, model) if name and slash and model.strip() else None


def named(provider_model: str | None) -> Named | None:
    """The provider that the settings name; None when the table has none of this name."""
    parts = split(provider_model)
    entry = provider_table.find(parts[0]) if parts else None
    return Named(entry, parts[1].strip()) if entry and parts else None


def ranking(chosen: Settings) -> tuple[str, str] | None:
    """Name and model of the provider that reranks; None where none is asked to."""
    asks = chosen.reranker == "remote" and not chosen.rerank_base_url
    return split(chosen.rerank_provider_model) if asks else None


def embedding(chosen: Settings) -> tuple[str, str] | None:
    """The same of the provider that the settings have embed."""
    asks = chosen.embedding_source in ("auto", "remote") and not chosen.has_endpoint
    return split(chosen.embedding_provider_model) if asks else None


def embedding_endpoint(chosen: Named) -> Endpoint:
    """Where and how to embed. Raises ``EmbeddingFailed``: ``provider_off``, ``provider_key``,
    ``no_embeddings``."""
    from engine.embed.endpoint import EmbeddingProtocol, Endpoint

    code = problem_of(chosen.entry)
    if code:
        raise EmbeddingFailed("The provider cannot be used.", code=code)
    spec = chosen.entry.spec
    speech = SPEECH[spec.speaks]
    if speech.embedding is None:
        raise EmbeddingFailed("This provider has no embeddings.", code="no_embeddings")
    return Endpoint(
        base_url=spec.url + speech.embedding_path,
        model=chosen.model,
        api_key=chosen.entry.key or None,
        protocol=EmbeddingProtocol(speech.embedding),
        batch_texts=spec.service.batch_texts,
        batch_tokens=spec.service.batch_tokens,
    )


def own_endpoint(chosen: Settings) -> Endpoint:
    """The one address in the settings, which belongs to no provider."""
    from engine.embed.endpoint import EmbeddingProtocol, Endpoint

    return Endpoint(
        base_url=chosen.custom_base_url or "",
        model=chosen.custom_model_id or "",
        api_key=secretbox.open_sealed(chosen.custom_api_key) or None,
        protocol=EmbeddingProtocol(chosen.custom_protocol),
    )


def remote_source(
    endpoint: Endpoint, client: HttpClient, known_dim: int | None = None
) -> RemoteSource:
    """The source of an endpoint. ``known_dim`` is what the catalogue says of its model."""
    # The dimension that an earlier run learnt is in the signature of its index.
    for row in VectorIndex.objects.filter(source="remote", model=endpoint.model):
        source = bare_source(endpoint, client, row.dim)
        if str(source.signature) == row.signature:
            return source
    return bare_source(endpoint, client, known_dim)


def bare_source(endpoint: Endpoint, client: HttpClient, dim: int | None = None) -> RemoteSource:
    """The source of an endpoint by itself; without ``dim`` its first answer tells it."""
    from engine.embed.remote import RemoteSource

    return RemoteSource(endpoint, template=TEMPLATE, client=client, dim=dim)


def rerank_endpoint(chosen: Named) -> RerankEndpoint:
    """Where and how to rerank. Raises ``RerankFailed``: ``provider_off``, ``provider_key``,
    ``no_reranking``."""
    from engine.rerank.remote import RerankEndpoint, RerankProtocol

    code = problem_of(chosen.entry)
    if code:
        raise RerankFailed("The provider cannot be used.", code=code)
    spec = chosen.entry.spec
    speech = SPEECH[spec.speaks]
    if speech.rerank is None:
        raise RerankFailed("This provider has no reranking.", code="no_reranking")
    return RerankEndpoint(
        spec.url + speech.rerank_path,
        model=chosen.model,
        api_key=chosen.entry.key or None,
        protocol=RerankProtocol(speech.rerank),
    )


def abilities(spec: ProviderSpec) -> dict[str, bool]:
    """What a provider could do by its protocol and kind."""
    speech = SPEECH[spec.speaks]
    # Under another protocol it is another server, of which the catalogue knows nothing.
    is_other = spec.speaks is not spec.service.protocol
    return {
        "chat": speech.chat is not None and (is_other or spec.service.chat),
        "embedding": speech.embedding is not None,
        "rerank": speech.rerank is not None and (is_other or spec.service.rerank),
    }


def can_embed(entry: Entry) -> bool:
    """Whether embeddings could be asked of it now."""
    return not problem_of(entry) and SPEECH[entry.spec.speaks].embedding is not None


def has_credential(entry: Entry) -> bool:
    """Whether it has the key that it needs; one that needs none has it."""
    try:
        return bool(entry.key) or not entry.spec.service.needs_key
    except EngineError:
        return False


def problem_of(entry: Entry) -> str:
    """Why a provider cannot be asked: ``provider_off``, ``provider_key``; empty when it can."""
    if not entry.is_usable:
        return "provider_off"
    return "" if has_credential(entry) else "provider_key"
