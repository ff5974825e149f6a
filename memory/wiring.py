"""Settings and connection to engine objects: the one place that chooses implementations.

Objects that hold a model or an in-memory index live as long as the process and are shared by its
threads; ``reset`` forgets them.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from django.conf import settings as django_settings
from django.db import connection
from django.utils.module_loading import import_string

from engine import database
from engine.errors import EmbeddingFailed, EngineError
from engine.keyword.choose import durable_index
from engine.postgres import PostgresConnection
from engine.protocols import DatabaseConnection, EmbeddingSource, KeywordIndex, VectorStore
from engine.text.template import VERSION as TEMPLATE
from engine.text.tokenize import analyzer
from engine.types import Degraded, Passage, Purpose, Signature
from memory import backend_wiring, local_stores, provider_sources, rerankers, shared_vectors
from memory.model_facts import LOCAL_FAMILIES, id_of, models_dir
from memory.models import EngineSettings, VectorIndex
from memory.passage_cache import PassageCache
from memory.passage_reader import PassageReader
from memory.provider_sources import Named
from memory.stored_settings import Settings, normalise

if TYPE_CHECKING:
    from engine.embed.cache import CachedSource
    from engine.keyword.postings import PostingsIndex
    from engine.net.client import HttpClient
    from engine.vectors.state import Options

_lock = threading.RLock()
_sources: dict[tuple[str, ...], CachedSource] = {}
_stores: dict[tuple[int, str], VectorStore] = {}
_client: HttpClient | None = None
_keyword: PostingsIndex | None = None
_wrap: Callable[[EmbeddingSource], EmbeddingSource] | None = None


@dataclass(frozen=True, slots=True)
class Resolved:
    """The embedding source that the settings choose, or why there is none."""

    source: CachedSource | None
    family: str
    off: Degraded | None = None


def settings() -> Settings:
    """The stored settings, normalised. One small query; never stale."""
    return normalise(stored_values())


def stored_values() -> Mapping[str, Any]:
    """The settings as they are stored, for those who read several kinds of them."""
    row = EngineSettings.objects.filter(pk=1).first()
    stored = row.stored if row else {}
    if named := django_settings.MEMORY_TRANSFORMERS_MODEL:
        stored = {"memoryLocalModel": id_of(named), **stored}
    return stored


def is_alone() -> bool:
    """Whether the database is a file of the home, which only one studio has at a time."""
    return connection.vendor == "sqlite"


def connect() -> DatabaseConnection:
    """The calling thread's raw database connection; shares Django's transaction."""
    connection.ensure_connection()
    raw = connection.connection
    if connection.vendor == "sqlite":
        return cast(DatabaseConnection, raw)
    if raw.closed and not connection.in_atomic_block:
        # The server has gone and may be back; Django looks only between requests.
        connection.close()
        connection.ensure_connection()
        raw = connection.connection
    return PostgresConnection(raw)


def keyword_index() -> KeywordIndex:
    """The keyword index of this database: postings in memory before the durable one."""
    global _keyword
    from engine.keyword.postings import PostingsIndex

    with _lock:
        if _keyword is None:
            durable = durable_index(connect, analyzer=analyzer("search"), texts=_texts)
            folder = Path(django_settings.MEMORY_STUDIO_HOME) / "cache" / "keyword"
            _keyword = PostingsIndex(durable, folder=folder, release=lambda: connection.close())
        return _keyword


passages_read: Final = PassageCache(connect)
"""What searches of this process have read of passages."""


def _texts(ids: Collection[int]) -> Mapping[int, Passage]:
    # A reader for each call: it remembers what it has read, and the index lives for ever.
    return PassageReader().load(ids)


def ensure_indexes() -> None:
    """Create the derived tables where they are missing."""
    from memory import qdrant_store

    keyword_index().ensure()
    local_stores.prepare(connect)
    qdrant_store.ensure()
    for row in VectorIndex.objects.exclude(state=VectorIndex.State.RETIRED):
        store_for(row).ensure()


def http_client() -> HttpClient:
    """The one client for outbound requests of this process, through the environment's proxies."""
    global _client
    from engine.net.client import HttpClient
    from engine.net.proxies import Proxies

    with _lock:
        if _client is None:
            _client = HttpClient(proxies=Proxies(None, os.environ))
        return _client


def resolve_source(chosen: Settings | None = None) -> Resolved:
    """The embedding source of the settings. Building one is cheap: models load on first use."""
    chosen = chosen or settings()
    named = None if chosen.has_endpoint else provider_sources.named(chosen.embedding_provider_model)
    family = _family(chosen, named)
    try:
        if family == "local":
            return Resolved(_local_source(_local_model(chosen)), family)
        if family == "static" and (model := _static_model()):
            return Resolved(_local_source(model), family)
        if family == "remote" and chosen.has_endpoint:
            return Resolved(_of_endpoint(chosen), family)
        if family == "remote" and named is not None:
            return Resolved(_of_provider(named), family)
    except EmbeddingFailed as error:
        return Resolved(None, family, Degraded("vector", error.code, str(error)))
    is_named = family == "remote" and chosen.embedding_provider_model is not None
    return Resolved(None, family, _NO_PROVIDER if is_named else _OFF[family])


def signature_of(source: EmbeddingSource) -> Signature:
    """The signature of a source, asking a remote one once when its dimension is not known yet.

    Raises ``EmbeddingFailed``.
    """
    try:
        return source.signature
    except EmbeddingFailed:
        source.embed(["dimension"], purpose=Purpose.QUERY)
        return source.signature


def _family(chosen: Settings, named: Named | None) -> str:
    names_local = not chosen.has_endpoint and _names_local(chosen)
    if chosen.embedding_source == "auto":
        if chosen.has_endpoint or named is not None:
            return "remote"
        return "static" if chosen.static_enabled and _static_model() else "local"
    if chosen.embedding_source == "remote" and names_local:
        return "local"
    return "local" if chosen.embedding_source == "transformers" else chosen.embedding_source


def _names_local(chosen: Settings) -> bool:
    """Whether a local model was picked from the list in which all models are."""
    return (chosen.embedding_provider_model or "").startswith(provider_sources.LOCAL)


def _local_model(chosen: Settings) -> str:
    if chosen.embedding_source == "remote" and chosen.embedding_provider_model:
        return chosen.embedding_provider_model.removeprefix(provider_sources.LOCAL)
    return chosen.local_model


_OFF: Final = {
    "remote": Degraded("vector", "no_key", "no remote embedding endpoint is configured"),
    "static": Degraded("vector", "not_installed", "no static embedding model is installed"),
}
_NO_PROVIDER: Final = Degraded("vector", "no_provider", "no provider of this name is set up")


def _static_model() -> str | None:
    """The static model that the environment names, else the first, of those that are installed."""
    from memory.local_sources import offered

    entries = [entry for entry in offered(models_dir()) if entry.kind == "static"]
    named = id_of(django_settings.MEMORY_STATIC_MODEL, entries)
    found = [entry.id for entry in entries]
    return named if named in found else next(iter(found), None)


def _cached(key: tuple[str, ...], build: Callable[[], EmbeddingSource]) -> CachedSource:
    from engine.embed.cache import CachedSource

    with _lock:
        if key not in _sources:
            source = build()
            _sources[key] = CachedSource(
                _wrap(source) if _wrap else source,
                max_entries=django_settings.MEMORY_EMBEDDING_CACHE_MAX,
                ttl_s=django_settings.MEMORY_EMBEDDING_CACHE_TTL_MS / 1000,
                shared=shared_vectors.configured(),
            )
        return _sources[key]


def _local_source(model: str) -> CachedSource:
    return _cached(("local", model), lambda: _local(model))


def _local(model: str) -> EmbeddingSource:
    folder = models_dir()
    path = django_settings.MEMORY_LOCAL_SOURCES.get(model)
    if path is not None:
        return cast(EmbeddingSource, import_string(path)(models_dir=folder, template=TEMPLATE))
    from memory.local_sources import from_catalogue

    return from_catalogue(model, models_dir=folder, template=TEMPLATE)


def _of_endpoint(chosen: Settings) -> CachedSource:
    """The source of the one address in the settings."""
    endpoint = provider_sources.own_endpoint(chosen)
    key = ("remote", endpoint.protocol, endpoint.base_url, endpoint.model, chosen.custom_api_key)
    return _cached(key, lambda: provider_sources.remote_source(endpoint, http_client()))


def _of_provider(named: Named) -> CachedSource:
    """The source of a provider's model. Another key makes another client of the same vectors."""
    endpoint = provider_sources.embedding_endpoint(named)
    dim = named.known.dimensions if named.known else None
    key = ("provider", endpoint.protocol, endpoint.base_url, endpoint.model, named.key_hash)
    return _cached(key, lambda: provider_sources.remote_source(endpoint, http_client(), dim))


def store_for(row: VectorIndex) -> VectorStore:
    """The vector store of one index; built once in a process for each choice of the settings."""
    kind = local_stores.kind_for(lambda: settings().vector_store, connect)
    key = (row.pk, kind)
    with _lock:
        is_new = key not in _stores
        if is_new:
            signature = Signature(row.source, row.model, row.revision, row.dim)
            _stores[key] = local_stores.build(
                kind, connect, signature=signature, index_id=row.pk, options=_vector_options(row)
            )
        store = _stores[key]
    if is_new and kind == "pgvector":
        # It may have been chosen just now. Not under the lock: the database has its own.
        store.ensure()
    return store


def search_stores(row: VectorIndex, chosen: Settings) -> tuple[VectorStore, ...]:
    """The stores that searches of an index ask, in order; the last one is that of ``store_for``."""
    from memory import qdrant_store

    return qdrant_store.stores(row, chosen)


def _vector_options(row: VectorIndex) -> Options:
    """How the vectors of an index are kept, by what the catalogue knows of its model."""
    from engine.embed import means
    from engine.vectors.state import Options
    from memory.model_facts import entry_of

    folder = Path(django_settings.MEMORY_STUDIO_HOME) / "vectors"
    entry = entry_of(row)
    if entry is None or not entry.is_centred:
        return Options(folder=folder)
    return Options(folder=folder, centred=True, means=means.packaged(entry))


def lock_indexes(*, alone: bool = False) -> None:
    """Until the end of the transaction, have no index come into use or go out of it.

    Those who write passages hold this together; who changes which indexes are in use holds it
    ``alone``.
    """
    database.lock(connect(), "vector indexes", shared=not alone)


def forget_store(index_id: int) -> None:
    """Let go of a store whose index was removed."""
    with _lock:
        for key in [key for key in _stores if key[0] == index_id]:
            del _stores[key]


def forget_files() -> None:
    """Remove the files of both indexes, which may hold what was erased. They are made again."""
    from engine.keyword.postings import PostingsIndex
    from engine.vectors.in_process import InProcessIndex

    keyword = keyword_index()
    if isinstance(keyword, PostingsIndex):
        keyword.forget_files()
    for row in VectorIndex.objects.all():
        store = store_for(row)
        for part in (store, getattr(store, "meanwhile", None)):
            if isinstance(part, InProcessIndex):
                part.forget_files()


def remove_orphaned_files() -> None:
    """Remove the files of vector indexes that are no more (at a start)."""
    from engine.vectors.files import remove_orphans

    known = set(VectorIndex.objects.values_list("pk", flat=True))
    remove_orphans(Path(django_settings.MEMORY_STUDIO_HOME) / "vectors", known)


def source_for(row: VectorIndex, chosen: Settings | None = None) -> CachedSource | None:
    """The source that makes vectors of an index's signature, or None when there is none any more.

    That is the configured one, another local model, or what the settings chose when the index was
    made: while its successor is being built, the live index still answers with its own model.
    """
    configured = resolve_source(chosen).source
    if configured is not None and makes(configured, row):
        return configured
    for model in local_models(row):
        try:
            source = _local_source(model)
        except EmbeddingFailed:
            continue
        if makes(source, row):
            return source
    if row.source == "remote":
        earlier = resolve_source(normalise(row.made_by)).source
        return earlier if earlier is not None and makes(earlier, row) else None
    return None


def local_models(row: VectorIndex) -> list[str]:
    """Names of the local models that may have made an index; none for a remote source."""
    if row.source not in LOCAL_FAMILIES:
        return []
    return list(dict.fromkeys([*django_settings.MEMORY_LOCAL_SOURCES, row.model]))


def makes(source: CachedSource, row: VectorIndex) -> bool:
    """Whether a source makes vectors of an index's signature; nothing is asked for it."""
    try:
        return str(source.signature) == row.signature
    except EngineError:
        return False


def wrap_source(wrap: Callable[[EmbeddingSource], EmbeddingSource]) -> None:
    """Put something around every source built from now on, until ``reset`` (evaluation)."""
    global _wrap
    with _lock:
        _sources.clear()
        _wrap = wrap


def reset() -> None:
    """Forget every shared object (tests, and after the database was replaced)."""
    global _client, _keyword, _wrap
    with _lock:
        _keyword = None
        if _client is not None:
            _client.close()
        _client = None
        _wrap = None
        _sources.clear()
        _stores.clear()
    passages_read.clear()
    from memory import qdrant_store, subscriptions

    local_stores.reset()
    rerankers.reset()
    qdrant_store.reset()
    backend_wiring.reset()
    subscriptions.reset()
