"""What vaults are served by: the keeper of this process, models and services, configuration.

Embedding, reranking and generation for vaults know nothing of the studio's own settings for
memories: without a ``[rag]`` table nothing of a vault leaves the machine.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from django.conf import settings
from django.utils.module_loading import import_string

from engine.errors import EmbeddingFailed
from engine.net.policy import UrlPolicy, check_url
from engine.protocols import EmbeddingSource, Reranker, TextGenerator
from engine.text.template import VERSION as TEMPLATE
from engine.vault.config import Http, RagConfig, Service, load
from engine.vault.errors import VaultError
from engine.vault.keeper import Keeper
from engine.vault.keys import STANDARD, Cost
from memory.models import Vault

if TYPE_CHECKING:
    from engine.net.client import HttpClient, Limits

CONFIG_NAME: Final = "config.toml"
GEMMA: Final = "embeddinggemma"
GENERATION_BYTES: Final = 4 << 20

Check = Callable[[], None]

_lock = threading.RLock()
_keeper = Keeper()
_config: RagConfig | None = None
_sources: dict[tuple[str, int | None], EmbeddingSource] = {}
_services: dict[tuple[str, bool], EmbeddingSource | Reranker | TextGenerator] = {}
_clients: dict[bool, HttpClient] = {}
_watching: ContextVar[Check | None] = ContextVar("watching", default=None)


@dataclass(frozen=True, slots=True)
class Backend:
    """What embeds for a vault, as status tells it. ``host`` is empty for a local model."""

    kind: str
    model: str
    host: str = ""


def keeper() -> Keeper:
    """The keeper of this process."""
    return _keeper


def require_keeper() -> Keeper:
    """The keeper, for work with keys. Raises ``VaultError``.

    ``vaultd_unavailable`` where another process has the keys and could not be asked,
    ``needs_embedded`` where none does.
    """
    if settings.MEMORY_STUDIO_KEEPS_VAULTS:
        return _keeper
    if settings.MEMORY_STUDIO_VAULTD:
        raise VaultError(
            "The process that keeps the keys of sealed vaults (vaultd) could not be asked.",
            code="vaultd_unavailable",
        )
    raise VaultError(
        "Sealed vaults need one process that keeps their keys: the studio on SQLite, or "
        "`manage.py vaultd` with MEMORY_STUDIO_VAULTD.",
        code="needs_embedded",
    )


def cost() -> Cost:
    """What a guess of a passphrase is to cost."""
    return replace(STANDARD, memory_kib=settings.MEMORY_STUDIO_VAULT_MEMORY_MIB * 1024)


def config() -> RagConfig:
    """The ``[rag]`` tables, read once in a process. Raises ``ConfigInvalid``."""
    global _config
    with _lock:
        if _config is None:
            _config = load(Path(settings.MEMORY_STUDIO_HOME) / CONFIG_NAME)
        return _config


@contextmanager
def watching(check: Check) -> Iterator[None]:
    """Requests to services that are made inside are tried again only while ``check`` allows it."""
    token = _watching.set(check)
    try:
        yield
    finally:
        _watching.reset(token)


def backend(vault: Vault) -> Backend:
    """What embeds for a vault."""
    remote = config().embedding
    if remote is not None:
        return Backend(remote.protocol, remote.model, _host(remote.url))
    return Backend("local", _model_of(vault))


def is_stopgap(vault: Vault) -> bool:
    """Whether a vault embeds with a packaged model because EmbeddingGemma is not installed."""
    chosen = backend(vault)
    return chosen.kind == "local" and not vault.embedding_model and chosen.model != GEMMA


def source(vault: Vault) -> EmbeddingSource:
    """What embeds for a vault. Building it asks nothing and loads nothing.

    Raises ``VaultError`` (``model_not_installed``, ``device_only_vault``).
    """
    remote = config().embedding
    if remote is not None:
        key = ("embedding", vault.is_device_only)
        return cast(EmbeddingSource, _served(key, vault, remote, _remote_source))
    name = _model_of(vault)
    # A length is one of the model that was chosen, not of one that stands in for it.
    dim = vault.embedding_dim if vault.embedding_model or name == GEMMA else None
    with _lock:
        if (name, dim) not in _sources:
            try:
                _sources[name, dim] = _local_source(name, dim)
            except EmbeddingFailed as error:
                raise VaultError(str(error), code="model_not_installed") from error
        return _sources[name, dim]


def reranker(vault: Vault) -> tuple[str, Reranker]:
    """``service`` or ``light``, and the reranker. Raises ``VaultError`` (``device_only_vault``)."""
    service = config().rerank
    if service is None:
        from engine.rerank.light import LightReranker
        from engine.text.tokenize import analyzer

        return "light", LightReranker(analyzer("seed"))
    key = ("rerank", vault.is_device_only)
    return "service", cast(Reranker, _served(key, vault, service, _remote_reranker))


def generator(vault: Vault) -> TextGenerator | None:
    """What writes answers; None when nothing is configured. Raises as ``reranker``."""
    service = config().generation
    if service is None:
        return None
    key = ("generation", vault.is_device_only)
    return cast(TextGenerator, _served(key, vault, service, _remote_generator))


def generation_host() -> str:
    """Where answers are written; empty without a service."""
    service = config().generation
    return "" if service is None else _host(service.url)


def reset() -> None:
    """Forget keys, indexes, models and configuration (tests, and after a restore)."""
    global _config
    with _lock:
        _keeper.lock_all()
        _sources.clear()
        _services.clear()
        for client in _clients.values():
            client.close()
        _clients.clear()
        _config = None


def _model_of(vault: Vault) -> str:
    if vault.embedding_model:
        return vault.embedding_model
    from memory import wiring

    return GEMMA if _has_gemma() else wiring.settings().local_model


def _has_gemma() -> bool:
    from engine.embed import catalogue, installed, local
    from memory.model_facts import models_dir

    entry = catalogue.find(GEMMA, models_dir())
    if local.is_available(entry, models_dir()):
        return True
    return not installed.missing(config().local_model_dir, entry)


def _local_source(name: str, dim: int | None) -> EmbeddingSource:
    from engine.embed import catalogue, local
    from engine.embed.onnx import Use
    from memory.model_facts import models_dir

    stand_in = settings.MEMORY_LOCAL_SOURCES.get(name)
    if stand_in is not None and dim is None:
        made = import_string(stand_in)(models_dir=models_dir(), template=TEMPLATE)
        return cast(EmbeddingSource, made)
    entry = catalogue.find(name, models_dir())
    use = Use(template=TEMPLATE, dim=dim)
    if name != GEMMA:
        return local.source(entry, models_dir(), use)
    chosen = config()
    use = replace(use, threads=chosen.local_threads, max_tokens=chosen.max_tokens)
    own = chosen.local_model_dir
    folder = own if own.is_dir() else None
    return local.source(entry, models_dir(), use, folder=folder)


def _served(
    key: tuple[str, bool],
    vault: Vault,
    service: Service,
    build: Callable[[Service, HttpClient], EmbeddingSource | Reranker | TextGenerator],
) -> EmbeddingSource | Reranker | TextGenerator:
    """One object for a service and a policy: it keeps connections and what it has learnt."""
    _judge(vault, service)
    with _lock:
        if key not in _services:
            _services[key] = build(service, _client(vault))
        return _services[key]


def _remote_source(service: Service, client: HttpClient) -> EmbeddingSource:
    from engine.embed.endpoint import EmbeddingProtocol, Endpoint
    from engine.embed.remote import RemoteSource
    from engine.types import Purpose

    endpoint = Endpoint(
        service.url,
        service.model,
        _key(service),
        protocol=EmbeddingProtocol(service.protocol),
        dimensions=service.dimensions,
        is_operation=True,
    )
    limits = dict.fromkeys(Purpose, _limits())
    return RemoteSource(endpoint, template=TEMPLATE, client=client, limits=limits)


def _remote_reranker(service: Service, client: HttpClient) -> Reranker:
    from engine.rerank.remote import RemoteReranker, RerankEndpoint

    endpoint = RerankEndpoint(service.url, service.model, _key(service))
    return RemoteReranker(endpoint, client=client, limits=_limits())


def _remote_generator(service: Service, client: HttpClient) -> TextGenerator:
    from engine.vault.generator import GenerationEndpoint, RemoteGenerator

    endpoint = GenerationEndpoint(
        service.url, service.model, service.protocol, _key(service), service.json_mode
    )
    limits = replace(_limits(), max_bytes=GENERATION_BYTES)
    return RemoteGenerator(endpoint, client=client, limits=limits)


def _judge(vault: Vault, service: Service) -> None:
    """Refuse a service that a vault may not use, before anything is sent or even resolved."""
    from engine.net.errors import UrlBlocked
    from engine.vault.generator import failed

    try:
        check_url(service.url, _policy(vault))
    except UrlBlocked as error:
        raise failed(error) from error


def _client(vault: Vault) -> HttpClient:
    from engine.net.client import HttpClient
    from engine.net.proxies import Proxies, configured_proxy

    if vault.is_device_only not in _clients:
        http = config().http
        environment: Mapping[str, str] = os.environ if http.use_env_proxy else {}
        named = configured_proxy(http.proxy_url) if http.proxy_url else None
        _clients[vault.is_device_only] = HttpClient(
            _policy(vault), proxies=Proxies(named, environment), wait=_wait
        )
    return _clients[vault.is_device_only]


def _wait(seconds: float) -> None:
    """The wait before a further attempt, which is not made when the work is void meanwhile."""
    from engine.net.client import pause

    check = _watching.get()
    if check is not None:
        check()
    pause(seconds)
    if check is not None:
        check()


def _policy(vault: Vault) -> UrlPolicy:
    return replace(config().http.policy, loopback_only=vault.is_device_only)


def _limits() -> Limits:
    from engine.net.client import Limits

    http: Http = config().http
    return Limits(
        connect_s=http.connect_timeout_seconds,
        total_s=http.timeout_seconds,
        retries=http.retries,
        backoff_ms=http.backoff_ms,
    )


def _key(service: Service) -> str | None:
    return os.environ.get(service.api_key_env) or None if service.api_key_env else None


def _host(url: str) -> str:
    return url.partition("//")[2].partition("/")[0]
