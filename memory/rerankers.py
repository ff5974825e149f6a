"""Builds the reranker that the settings choose, or tells why there is none."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from engine.embed import catalogue
from engine.errors import EngineError
from engine.protocols import Reranker
from engine.types import Degraded
from memory import secretbox
from memory.model_facts import models_dir
from memory.stored_settings import Settings

if TYPE_CHECKING:
    from engine.embed.cache import CachedSource
    from engine.net.client import HttpClient

_lock = threading.Lock()
Client = Callable[[], "HttpClient"]
_built: dict[tuple[str, ...], Reranker] = {}

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


def reset() -> None:
    """Forget every reranker that was built."""
    with _lock:
        _built.clear()


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
    from engine.errors import RerankFailed
    from engine.rerank.remote import RemoteReranker, RerankEndpoint, RerankProtocol

    if not chosen.rerank_base_url:
        raise RerankFailed("The rerank service has no address.", code="not_configured")
    endpoint = RerankEndpoint(
        chosen.rerank_base_url,
        model=chosen.rerank_provider_model or "",
        api_key=secretbox.open_sealed(chosen.rerank_api_key) or None,
        protocol=RerankProtocol(chosen.rerank_protocol),
    )
    key = ("remote", endpoint.base_url, endpoint.model, endpoint.protocol, chosen.rerank_api_key)
    return _kept(key, lambda: RemoteReranker(endpoint, client=client()))


_BUILDERS: Final[dict[str, Callable[[Settings, CachedSource | None, Client], Reranker]]] = {
    "light": _light,
    "late": _late,
    "cross-encoder": _cross_encoder,
    "remote": _remote,
}
