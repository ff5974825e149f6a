"""Remembers the vectors of recent queries around any embedding source."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence

import numpy as np

from engine.embed.lru import CacheStats, LruCache
from engine.errors import EngineError
from engine.protocols import EmbeddingSource
from engine.types import Health, Matrix, Purpose, Signature, Vector

Key = tuple[str, Purpose, bytes]


class CachedSource:
    """An ``EmbeddingSource`` that embeds a repeated query once.

    Documents pass through: each is embedded once anyway. Two threads that miss the same text at
    the same time both embed it. Returned arrays are copies.
    """

    def __init__(
        self,
        source: EmbeddingSource,
        *,
        max_entries: int = 1000,
        ttl_s: float = 300.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._source = source
        self._cache: LruCache[Key, Vector] = LruCache(max_entries, ttl_s, clock)

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
        prefix = self._prefix()
        if prefix is None:
            return self._source.embed(texts, purpose=purpose)
        keys = [(prefix, purpose, _digest(text)) for text in texts]
        found = [self._cache.get(key) for key in keys]
        missing = [place for place, vector in enumerate(found) if vector is None]
        if missing:
            fresh = self._source.embed([texts[place] for place in missing], purpose=purpose)
            for place, vector in zip(missing, fresh, strict=True):
                found[place] = kept = vector.copy()
                self._cache.put(keys[place], kept)
        return np.stack([vector for vector in found if vector is not None])

    def health(self) -> Health:
        """The source's health."""
        return self._source.health()

    def _prefix(self) -> str | None:
        """The signature as a key, None while the source does not know it yet."""
        try:
            return str(self._source.signature)
        except EngineError:
            return None


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
