"""The services of vaults in force: those of the ``[rag]`` tables, else those chosen in the studio.

A provider's base URL and protocol become the one address that is called, and the object that calls
it. Nothing is asked here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal

from django.db.models import IntegerField, Subquery
from django.db.models.fields.json import KT
from django.db.models.functions import Cast

from engine.errors import EngineError
from engine.protocols import EmbeddingSource, Reranker, TextGenerator
from engine.providers.speech import SPEECH, ChatProtocol, ProviderProtocol, chat_headers, chat_url
from engine.text.template import VERSION as TEMPLATE
from engine.vault.config import RagConfig, Service
from engine.vault.errors import VaultError
from memory import provider_sources, provider_table, vault_settings
from memory.models import EngineSettings
from memory.provider_sources import Named
from memory.vault_settings import REVISION, VaultSettings

if TYPE_CHECKING:
    from engine.embed.endpoint import Endpoint
    from engine.generate.chat import ChatEndpoint
    from engine.net.client import HttpClient, Limits
    from engine.rerank.remote import RerankEndpoint
    from engine.vault.generator import GenerationEndpoint

    AnyEndpoint = Endpoint | RerankEndpoint | GenerationEndpoint | ChatEndpoint

ServiceName = Literal["embedding", "generation", "rerank"]
NAMES: Final[tuple[ServiceName, ...]] = ("embedding", "generation", "rerank")
Remote = EmbeddingSource | Reranker | TextGenerator
GENERATION_BYTES: Final = 4 << 20
CODES: Final = {"provider_key": "auth_failed", "url_blocked": "url_policy"}
"""Codes of vaults for what is wrong with a chosen service; anything else is its own reason."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """One service that vaults use. ``url`` is the operation itself, ``protocol`` how it is asked.

    ``origin`` is the file or the studio; ``provider`` the name in the table of providers, empty
    for a ``[rag]`` table. ``key_variable`` names the variable of the key, when it is in one.
    ``problem`` is a code for why it cannot be asked; then there is no ``endpoint``.
    """

    name: ServiceName
    origin: Literal["config", "studio"]
    model: str
    protocol: str = ""
    url: str = ""
    provider: str = ""
    key_variable: str = ""
    has_key: bool = False
    dimensions: int | None = None
    json_mode: str = "off"
    problem: str = ""
    endpoint: AnyEndpoint | None = field(default=None, repr=False)

    @property
    def host(self) -> str:
        """Where it is, with the port; empty when that is not known."""
        return self.url.partition("//")[2].partition("/")[0]

    def check(self) -> None:
        """Raise ``VaultError`` when it cannot be asked as it is set up."""
        if self.problem:
            raise VaultError(
                f"The chosen {self.name} service cannot be used ({self.problem}).",
                code=CODES.get(self.problem, "service_unusable"),
                reason=self.problem,
            )


@dataclass(frozen=True, slots=True)
class Services:
    """What vaults use; None where nothing leaves the machine. ``revision`` as in the settings."""

    embedding: Chosen | None = None
    generation: Chosen | None = None
    rerank: Chosen | None = None
    revision: int = 0

    def named(self, name: ServiceName) -> Chosen | None:
        """One of the three."""
        found: Chosen | None = getattr(self, name)
        return found


def stored() -> VaultSettings:
    """What the studio keeps. One small query; never stale."""
    row = EngineSettings.objects.filter(pk=1).first()
    return vault_settings.normalise(row.stored if row else {})


def revision_now() -> Subquery:
    """The revision of the choice, for a query about something else. Null before the first one."""
    rows = EngineSettings.objects.filter(pk=1)
    number = Cast(KT(f"stored__{REVISION.key}"), IntegerField())
    return Subquery(rows.values(number=number)[:1])


def resolve(config: RagConfig, kept: VaultSettings) -> Services:
    """The services in force. A query, where the studio names providers that the file leaves to it.

    Never raises: what is wrong with a service is its ``problem``.
    """
    open_to_studio = {name for name in NAMES if getattr(config, name) is None}
    asked = any(getattr(kept, name) for name in open_to_studio)
    table = provider_table.table() if asked else []
    found: dict[str, Chosen | None] = {}
    for name in NAMES:
        if name not in open_to_studio:
            found[name] = _of_file(name, getattr(config, name))
        elif model := getattr(kept, name):
            found[name] = _of_studio(name, model, kept, table)
    return Services(**found, revision=kept.revision)


def build(chosen: Chosen, client: HttpClient, limits: Limits) -> Remote:
    """The object that asks a service. Nothing is asked yet. Raises ``VaultError``."""
    from engine.embed.endpoint import Endpoint
    from engine.embed.remote import RemoteSource
    from engine.rerank.remote import RemoteReranker, RerankEndpoint
    from engine.types import Purpose
    from engine.vault.chat_writer import ChatWriter
    from engine.vault.generator import GenerationEndpoint, RemoteGenerator

    chosen.check()
    endpoint = chosen.endpoint
    if isinstance(endpoint, Endpoint):
        both = dict.fromkeys(Purpose, limits)
        return RemoteSource(endpoint, template=TEMPLATE, client=client, limits=both)
    if isinstance(endpoint, RerankEndpoint):
        return RemoteReranker(endpoint, client=client, limits=limits)
    limits = replace(limits, max_bytes=GENERATION_BYTES)
    if isinstance(endpoint, GenerationEndpoint):
        return RemoteGenerator(endpoint, client=client, limits=limits)
    if endpoint is None:
        raise VaultError("The service has no address.", code="service_unusable")
    return ChatWriter(endpoint, client=client, limits=limits)


def _of_file(name: ServiceName, service: Service) -> Chosen:
    from engine.embed.endpoint import EmbeddingProtocol, Endpoint
    from engine.rerank.remote import RerankEndpoint
    from engine.vault.generator import GenerationEndpoint

    variable = service.api_key_env
    key = os.environ.get(variable) or None if variable else None
    url, model = service.url, service.model
    endpoint: AnyEndpoint
    if name == "embedding":
        protocol = EmbeddingProtocol(service.protocol)
        endpoint = Endpoint(
            url, model, key, protocol, dimensions=service.dimensions, is_operation=True
        )
    elif name == "generation":
        endpoint = GenerationEndpoint(url, model, service.protocol, key, service.json_mode)
    else:
        endpoint = RerankEndpoint(url, model, key)
    return Chosen(
        name,
        "config",
        model,
        service.protocol,
        url,
        key_variable=variable,
        has_key=key is not None,
        dimensions=service.dimensions,
        json_mode=service.json_mode,
        endpoint=endpoint,
    )


def _of_studio(
    name: ServiceName,
    provider_model: str,
    kept: VaultSettings,
    table: Sequence[provider_table.Entry],
) -> Chosen:
    parts = provider_sources.split(provider_model)
    if parts is None:
        return Chosen(name, "studio", provider_model, problem="no_provider")
    provider, model = parts[0], parts[1].strip()
    bare = Chosen(name, "studio", model, provider=provider)
    entry = next((entry for entry in table if entry.name == provider), None)
    if entry is None:
        return replace(bare, problem="no_provider")
    bare = replace(bare, key_variable=entry.spec.key_variable, has_key=bool(entry.key))
    try:
        return _BUILDERS[name](bare, Named(entry, model), kept)
    except EngineError as error:
        return replace(bare, problem=error.code)


def _embedding(bare: Chosen, named: Named, kept: VaultSettings) -> Chosen:
    from engine.embed.remote import endpoint_url

    length = kept.dimensions or None
    endpoint = replace(provider_sources.embedding_endpoint(named), dimensions=length)
    url = endpoint_url(endpoint.base_url, endpoint.model, protocol=endpoint.protocol) or ""
    protocol = str(endpoint.protocol)
    return replace(bare, protocol=protocol, url=url, endpoint=endpoint, dimensions=length)


def _rerank(bare: Chosen, named: Named, _kept: VaultSettings) -> Chosen:
    from engine.rerank.remote import rerank_url

    endpoint = provider_sources.rerank_endpoint(named)
    url = rerank_url(endpoint.base_url, endpoint.protocol)
    return replace(bare, protocol=str(endpoint.protocol), url=url, endpoint=endpoint)


def _generation(bare: Chosen, named: Named, kept: VaultSettings) -> Chosen:
    from engine.generate.chat import ChatEndpoint
    from engine.vault.generator import GenerationEndpoint

    entry, spec = named.entry, named.entry.spec
    if problem := provider_sources.problem_of(entry):
        return replace(bare, problem=problem)
    speaks, mode = spec.speaks, kept.json_mode
    if speaks is ProviderProtocol.GEMINI:
        url = f"{spec.url}/models/{named.model.removeprefix('models/')}:generateContent"
        own = GenerationEndpoint(url, named.model, "gemini", entry.key or None, mode)
        return replace(bare, protocol="gemini", url=url, endpoint=own, json_mode=mode)
    base = chat_url(spec.url, speaks)
    if base is None or not provider_sources.abilities(spec)["chat"]:
        return replace(bare, problem="no_chat")
    headers = chat_headers(speaks, entry.key)
    if SPEECH[speaks].chat is ChatProtocol.ANTHROPIC:
        # Its language has no way to ask for JSON.
        talk = ChatEndpoint(base, named.model, "anthropic", headers)
        return replace(bare, protocol="anthropic", url=f"{base}/messages", endpoint=talk)
    url = f"{base}/chat/completions"
    whole = GenerationEndpoint(url, named.model, json_mode=mode, headers=headers)
    return replace(bare, protocol="compatible", url=url, endpoint=whole, json_mode=mode)


_BUILDERS: Final[dict[ServiceName, Callable[[Chosen, Named, VaultSettings], Chosen]]] = {
    "embedding": _embedding,
    "generation": _generation,
    "rerank": _rerank,
}
