"""Remembers the vectors of recent queries around any embedding source."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from threading import Lock
from typing import Protocol, cast

import numpy as np

from engine.embed.lru import CacheStats, LruCache
from engine.errors import EngineError
from engine.protocols import EmbeddingSource, TokenVectorSource
from engine.types import Health, Matrix, Purpose, Signature, Vector


def cache_key(
    source: str, model: str | None, dim: int | None, text: str, *rest: str | Purpose
) -> str:
    """``source:model:dim:sha256`` of a text (first seed), then what else decides its vector.

    That is the revision of the model and the purpose: a query and a passage of the same words
    have different vectors.
    """
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return ":".join([source, model or "unknown", str(dim or 0), digest, *rest])


class SharedVectors(Protocol):
    """A second level that processes share, of float32 vectors as bytes. It never raises."""

    def get(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        """What it has of these keys."""
        ...

    def put(self, vectors: Mapping[str, bytes]) -> None:
        """Keep these, if it can."""
        ...


class CachedSource:
    """An ``EmbeddingSource`` that embeds a repeated query once.

    Documents pass through: each is embedded once anyway. A thread that misses a text which another
    is embedding waits for it, so that a query can be embedded ahead of its search. Returned arrays
    are copies. What is not here may be in ``shared``.
    """

    def __init__(
        self,
        source: EmbeddingSource,
        *,
        max_entries: int = 1000,
        ttl_s: float = 300.0,
        clock: Callable[[], float] = time.monotonic,
        shared: SharedVectors | None = None,
    ) -> None:
        self._source = source
        self._shared = shared
        self._cache: LruCache[str, Vector] = LruCache(max_entries, ttl_s, clock)
        self._under_way: dict[str, Future[Vector]] = {}
        self._lock = Lock()

    @property
    def name(self) -> str:
        return self._source.name

    @property
    def model(self) -> str:
        return self._source.model

    @property
    def signature(self) -> Signature:
        return self._source.signature

    @property
    def bare(self) -> EmbeddingSource:
        """The source within: what is asked of it is kept nowhere."""
        return self._source

    @property
    def token_source(self) -> TokenVectorSource | None:
        """The source within, when it also gives the vectors of tokens."""
        return (
            cast(TokenVectorSource, self._source)
            if hasattr(self._source, "token_vectors")
            else None
        )

    @property
    def is_loaded(self) -> bool:
        """Whether the source embeds at once; one that needs no loading always does."""
        return bool(getattr(self._source, "is_loaded", True))

    @property
    def stats(self) -> CacheStats:
        """Hits and misses since the last ``clear``, and vectors held."""
        return self._cache.stats

    def clear(self) -> None:
        """Forget every vector and the counts."""
        self._cache.clear()

    def embed(self, texts: Sequence[str], *, purpose: Purpose) -> Matrix:
        """As the source's own; queries seen within the time limit come from memory."""
        if purpose is not Purpose.QUERY or not texts:
            return self._source.embed(texts, purpose=purpose)
        space = self._space()
        if space is None:
            return self._source.embed(texts, purpose=purpose)
        rest = (space.revision, space.quantization, purpose)
        keys = [cache_key(space.source, space.model, space.dim, text, *rest) for text in texts]
        found = [self._cache.get(key) for key in keys]
        self._look_elsewhere(keys, found, space.dim)
        missing = {key: text for key, text, v in zip(keys, texts, found, strict=True) if v is None}
        made = self._made(missing)
        return np.stack([made[key] if v is None else v for key, v in zip(keys, found, strict=True)])

    def _made(self, missing: Mapping[str, str]) -> dict[str, Vector]:
        """Vectors of texts by their key; each is embedded by one thread at a time."""
        own: dict[str, Future[Vector]] = {}
        with self._lock:
            others = {key: self._under_way[key] for key in missing if key in self._under_way}
            own = {key: Future() for key in missing if key not in others}
            self._under_way |= own
        try:
            made = self._embedded({key: missing[key] for key in own})
            for key, vector in made.items():
                own[key].set_result(vector)
        except BaseException as error:
            for future in own.values():
                future.set_exception(error)
            raise
        finally:
            with self._lock:
                for key in own:
                    del self._under_way[key]
        return made | {key: future.result() for key, future in others.items()}

    def _embedded(self, texts: Mapping[str, str]) -> dict[str, Vector]:
        if not texts:
            return {}
        fresh = self._source.embed(list(texts.values()), purpose=Purpose.QUERY)
        made = {key: vector.copy() for key, vector in zip(texts, fresh, strict=True)}
        for key, vector in made.items():
            self._cache.put(key, vector)
        self._tell_others(made)
        return made

    def _look_elsewhere(self, keys: Sequence[str], found: list[Vector | None], dim: int) -> None:
        """Fill in what the second level has of what is missing."""
        missing = [place for place, vector in enumerate(found) if vector is None]
        if self._shared is None or not missing:
            return
        held = self._shared.get([keys[place] for place in missing])
        for place in missing:
            vector = _vector(held.get(keys[place]), dim)
            if vector is not None:
                self._cache.put(keys[place], vector)
                found[place] = vector

    def _tell_others(self, vectors: Mapping[str, Vector]) -> None:
        if self._shared is not None:
            kept = {key: np.asarray(value, "<f4").tobytes() for key, value in vectors.items()}
            self._shared.put(kept)

    def health(self) -> Health:
        """The source's health."""
        return self._source.health()

    def _space(self) -> Signature | None:
        """The signature, None while the source does not know it yet."""
        try:
            return self._source.signature
        except EngineError:
            return None


def _vector(data: bytes | None, dim: int) -> Vector | None:
    """The vector in these bytes; None when they are no vector of this size."""
    if data is None or len(data) != 4 * dim:
        return None
    vector = np.frombuffer(data, "<f4").astype(np.float32)
    return vector if bool(np.isfinite(vector).all()) else None
