"""Remembers the vectors of recent queries around any embedding source."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from typing import cast

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

    def _space(self) -> Signature | None:
        """The signature, None while the source does not know it yet."""
        try:
            return self._source.signature
        except EngineError:
            return None
