"""Builds the reranker that the settings choose, or tells why there is none."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from engine.embed import catalogue
from engine.errors import EngineError
from engine.protocols import Reranker
from engine.types import Degraded, Retrieval
from memory import provider_sources, secretbox
from memory.model_facts import models_dir
from memory.stored_settings import Settings

if TYPE_CHECKING:
    from engine.embed.cache import CachedSource
    from engine.net.client import HttpClient
    from engine.rerank.remote import RerankEndpoint

_lock = threading.Lock()
Client = Callable[[], "HttpClient"]
_built: dict[tuple[str, ...], Reranker] = {}
_failed: dict[tuple[str | None, ...], Degraded] = {}

Choice = tuple[Reranker | None, Degraded | None]


def chosen_reranker(chosen: Settings, source: CachedSource | None, client: Client) -> Choice:
    """The reranker of the settings and None, or None and the reason; both None when it is off.

    ``source`` is the embedding source that serves now: ``late`` reads its token vectors. Models
    load on first use.
    """
    build = _BUILDERS.get(chosen.reranker)
    if build is None:
        return None, None
    try:
        return build(chosen, source, client), None
    except EngineError as error:
        return None, Degraded("rerank", error.code, str(error))


def remember(chosen: Settings, retrieval: Retrieval) -> None:
    """Keep how the reranker did in a retrieval, so that its state can be told without asking it."""
    failed = next((item for item in retrieval.degraded if item.tier == "rerank"), None)
    with _lock:
        if failed is not None:
            _failed[_identity(chosen)] = failed
        elif retrieval.reranker is not None:
            _failed.pop(_identity(chosen), None)


def last_failure(chosen: Settings) -> Degraded | None:
    """What the chosen reranker failed over when this process last used it; None after a success."""
    with _lock:
        return _failed.get(_identity(chosen))


def _identity(chosen: Settings) -> tuple[str | None, ...]:
    return (
        chosen.reranker,
        chosen.rerank_base_url,
        chosen.rerank_provider_model,
        chosen.rerank_protocol,
        chosen.rerank_api_key,
    )


def reset() -> None:
    """Forget every reranker that was built."""
    with _lock:
        _built.clear()
        _failed.clear()


def _kept(key: tuple[str, ...], build: Callable[[], Reranker]) -> Reranker:
    """One object for a configuration: it keeps a model, or what a breaker has learnt."""
    with _lock:
        if key not in _built:
            _built[key] = build()
        return _built[key]


def _light(_chosen: Settings, _source: CachedSource | None, _client: Client) -> Reranker:
    from engine.rerank.light import LightReranker
    from engine.text.tokenize import analyzer

    return LightReranker(analyzer("search"))


def _late(_chosen: Settings, source: CachedSource | None, _client: Client) -> Reranker:
    from engine.errors import RerankFailed
    from engine.rerank.late import LateReranker

    inner = source.token_source if source is not None else None
    if inner is None:
        raise RerankFailed("No local model serves that gives token vectors.", code="not_installed")
    return LateReranker(inner)


def _cross_encoder(chosen: Settings, _source: CachedSource | None, _client: Client) -> Reranker:
    from engine.errors import RerankFailed
    from memory.local_sources import CROSS_ENCODER, cross_encoder, offered

    names = [entry.id for entry in offered(models_dir()) if entry.kind == CROSS_ENCODER]
    wanted = chosen.rerank_provider_model or (names[0] if names else "")
    if wanted not in names:
        raise RerankFailed("No cross-encoder is installed.", code="not_installed")
    revision = catalogue.find(wanted, models_dir()).revision
    return _kept(
        ("cross-encoder", wanted, revision), lambda: cross_encoder(wanted, models_dir=models_dir())
    )


def _remote(chosen: Settings, _source: CachedSource | None, client: Client) -> Reranker:
    from engine.rerank.remote import RemoteReranker

    endpoint = _endpoint(chosen)
    secret = hashlib.sha256((endpoint.api_key or "").encode()).hexdigest()
    key = ("remote", endpoint.base_url, endpoint.model, endpoint.protocol, secret)
    return _kept(key, lambda: RemoteReranker(endpoint, client=client()))


def _endpoint(chosen: Settings) -> RerankEndpoint:
    """The address in the settings, else that of the provider which the model names."""
    from engine.errors import RerankFailed
    from engine.rerank.remote import RerankEndpoint, RerankProtocol

    if chosen.rerank_base_url:
        return RerankEndpoint(
            chosen.rerank_base_url,
            model=chosen.rerank_provider_model or "",
            api_key=secretbox.open_sealed(chosen.rerank_api_key) or None,
            protocol=RerankProtocol(chosen.rerank_protocol),
        )
    named = provider_sources.named(chosen.rerank_provider_model)
    if named is not None:
        return provider_sources.rerank_endpoint(named)
    if provider_sources.split(chosen.rerank_provider_model):
        raise RerankFailed("No provider of this name is set up.", code="no_provider")
    raise RerankFailed("The rerank service has no address.", code="not_configured")


_BUILDERS: Final[dict[str, Callable[[Settings, CachedSource | None, Client], Reranker]]] = {
    "light": _light,
    "late": _late,
    "cross-encoder": _cross_encoder,
    "remote": _remote,
}
