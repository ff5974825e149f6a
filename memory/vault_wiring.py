"""What vaults are served by: the keeper of this process, models and services, configuration.

Embedding, reranking and generation for vaults know nothing of the studio's own settings for
memories: unless a ``[rag]`` table or the settings of vaults name a service, nothing of a vault
leaves the machine.
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
from engine.vault.config import Http, RagConfig, load
from engine.vault.errors import VaultError
from engine.vault.keeper import Keeper
from engine.vault.keys import STANDARD, Cost
from memory import vault_services
from memory.models import Vault
from memory.vault_services import Chosen, Remote, Services

if TYPE_CHECKING:
    from engine.net.client import HttpClient, Limits

CONFIG_NAME: Final = "config.toml"
GEMMA: Final = "embeddinggemma"

Check = Callable[[], None]

_lock = threading.RLock()
_keeper = Keeper()
_config: RagConfig | None = None
_sources: dict[tuple[str, int | None], EmbeddingSource] = {}
_remotes: dict[tuple[str, bool], tuple[Chosen, Remote]] = {}
_clients: dict[bool, HttpClient] = {}
_watching: ContextVar[Check | None] = ContextVar("watching", default=None)
_seen: ContextVar[list[Services] | None] = ContextVar("seen", default=None)


@dataclass(frozen=True, slots=True)
class Backend:
    """What embeds for a vault, as status tells it. ``host`` is empty for a local model.

    ``origin`` says where a service was chosen, ``config``, ``studio`` or ``memories``, and
    ``provider`` its name there; ``problem`` why it cannot be asked.
    """

    kind: str
    model: str
    host: str = ""
    origin: str = ""
    provider: str = ""
    problem: str = ""


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
    """Requests to services that are made inside are tried again only while ``check`` allows it.

    The services are those of the first look: another choice meanwhile is what ``check`` tells.
    """
    token = _watching.set(check)
    try:
        with one_look():
            yield
    finally:
        _watching.reset(token)


@contextmanager
def one_look() -> Iterator[None]:
    """Read which services are in force once for all that is done inside."""
    before = _seen.get()
    token = _seen.set([] if before is None else before)
    try:
        yield
    finally:
        _seen.reset(token)


def services() -> Services:
    """The services in force, as they are stored now. Raises ``ConfigInvalid``."""
    seen = _seen.get()
    if seen:
        return seen[0]
    found = vault_services.resolve(config(), vault_services.stored())
    if seen is not None:
        seen.append(found)
    return found


def has_embedding_service() -> bool:
    """Whether a service embeds for vaults. One small query; raises ``ConfigInvalid``."""
    if config().embedding is not None:
        return True
    if _seen.get() is not None:
        return services().embedding is not None
    return vault_services.stored().embedding is not None


def backend(vault: Vault) -> Backend:
    """What embeds for a vault."""
    remote = _embedding(vault)
    if remote is None:
        return Backend("local", _model_of(vault))
    kind = remote.protocol or "remote"
    return Backend(kind, remote.model, remote.host, remote.origin, remote.provider, remote.problem)


def _embedding(vault: Vault) -> Chosen | None:
    """The service that embeds for a vault; a vault with a model of its own needs none."""
    return None if vault.embedding_model else services().embedding


def is_stopgap(vault: Vault) -> bool:
    """Whether a vault embeds with a packaged model because EmbeddingGemma is not installed."""
    chosen = backend(vault)
    return chosen.kind == "local" and not vault.embedding_model and chosen.model != GEMMA


def source(vault: Vault) -> EmbeddingSource:
    """What embeds for a vault. Building it asks nothing and loads nothing.

    Raises ``VaultError`` (``model_not_installed``, ``device_only_vault``).
    """
    remote = _embedding(vault)
    if remote is not None:
        return cast(EmbeddingSource, _served(vault, remote))
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
    service = services().rerank
    if service is None:
        from engine.rerank.light import LightReranker
        from engine.text.tokenize import analyzer

        return "light", LightReranker(analyzer("seed"))
    return "service", cast(Reranker, _served(vault, service))


def generator(vault: Vault) -> TextGenerator | None:
    """What writes answers; None when nothing is configured. Raises as ``reranker``."""
    service = services().generation
    return None if service is None else cast(TextGenerator, _served(vault, service))


def generation_host() -> str:
    """Where answers are written; empty without a service."""
    service = services().generation
    return "" if service is None else service.host


def trial(chosen: Chosen, limits: Limits) -> Remote:
    """A service to be tried by itself, as a vault that is not for this device alone would ask it.

    Raises ``VaultError``.
    """
    chosen.check()
    _judge(chosen, is_device_only=False)
    with _lock:
        client = _client(is_device_only=False)
    return vault_services.build(chosen, client, limits)


def reset() -> None:
    """Forget keys, indexes, models and configuration (tests, and after a restore)."""
    global _config
    with _lock:
        _keeper.lock_all()
        _sources.clear()
        _remotes.clear()
        for client in _clients.values():
            client.close()
        _clients.clear()
        _config = None


def _model_of(vault: Vault) -> str:
    if vault.embedding_model:
        return vault.embedding_model
    from memory import wiring

    return GEMMA if has_gemma() else wiring.settings().local_model


def has_gemma() -> bool:
    """Whether EmbeddingGemma is installed, in its place or in a folder of one's own."""
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


def _served(vault: Vault, chosen: Chosen) -> Remote:
    """One object for a service and a policy: it keeps connections and what it has learnt."""
    chosen.check()
    _judge(chosen, is_device_only=vault.is_device_only)
    key = (chosen.name, vault.is_device_only)
    with _lock:
        known = _remotes.get(key)
        if known is None or known[0] != chosen:
            client = _client(is_device_only=vault.is_device_only)
            known = _remotes[key] = (chosen, vault_services.build(chosen, client, limits()))
        return known[1]


def _judge(chosen: Chosen, *, is_device_only: bool) -> None:
    """Refuse a service that a vault may not use, before anything is sent or even resolved."""
    from engine.net.errors import UrlBlocked
    from engine.vault.generator import failed

    try:
        check_url(chosen.url, _policy(is_device_only=is_device_only))
    except UrlBlocked as error:
        raise failed(error) from error


def _client(*, is_device_only: bool) -> HttpClient:
    from engine.net.client import HttpClient
    from engine.net.proxies import Proxies, configured_proxy

    if is_device_only not in _clients:
        http = config().http
        environment: Mapping[str, str] = os.environ if http.use_env_proxy else {}
        named = configured_proxy(http.proxy_url) if http.proxy_url else None
        _clients[is_device_only] = HttpClient(
            _policy(is_device_only=is_device_only),
            proxies=Proxies(named, environment),
            wait=_wait,
        )
    return _clients[is_device_only]


def _wait(seconds: float) -> None:
    """The wait before a further attempt, which is not made when the work is void meanwhile."""
    from engine.net.client import pause

    check = _watching.get()
    if check is not None:
        check()
    pause(seconds)
    if check is not None:
        check()


def _policy(*, is_device_only: bool) -> UrlPolicy:
    return replace(config().http.policy, loopback_only=is_device_only)


def limits() -> Limits:
    """How long a service may take, and how often it is tried again."""
    from engine.net.client import Limits

    http: Http = config().http
    return Limits(
        connect_s=http.connect_timeout_seconds,
        total_s=http.timeout_seconds,
        retries=http.retries,
        backoff_ms=http.backoff_ms,
    )
