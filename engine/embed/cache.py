"""Remembers the vectors of recent queries around any embedding source."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
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

    Documents pass through: each is embedded once anyway. Two threads that miss the same text at
    the same time both embed it. Returned arrays are copies. What is not here may be in ``shared``.
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
        missing = [place for place, vector in enumerate(found) if vector is None]
        if missing:
            fresh = self._source.embed([texts[place] for place in missing], purpose=purpose)
            for place, vector in zip(missing, fresh, strict=True):
                found[place] = kept = vector.copy()
                self._cache.put(keys[place], kept)
            self._tell_others({keys[place]: fresh[row] for row, place in enumerate(missing)})
        return np.stack([vector for vector in found if vector is not None])

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
