"""Query vectors in the cache that all processes share: what one has embedded, none embeds again."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping, Sequence

from django.conf import settings
from django.core.cache import BaseCache, cache

from memory.pause import Pause


class SharedVectors:
    """Vectors as bytes in Django's cache. A cache that fails has nothing and takes nothing."""

    def __init__(
        self, kept_s: float, *, shared: BaseCache = cache, pause: Pause | None = None
    ) -> None:
        self._kept_s = kept_s
        self._cache = shared
        self._pause = pause or Pause("the shared cache")

    def get(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        """What is there of these keys."""
        if self._pause.is_on:
            return {}
        try:
            names = {_name(key): key for key in keys}
            found = self._cache.get_many(list(names))
            vectors = {names[name]: base64.b64decode(text) for name, text in found.items()}
        except (binascii.Error, TypeError, ValueError):
            return {}  # not what we have written
        except Exception as error:
            self._pause.begin(error)
            return {}
        self._pause.end()
        return vectors

    def put(self, vectors: Mapping[str, bytes]) -> None:
        """Keep these for the others."""
        if self._pause.is_on:
            return
        texts = {_name(key): base64.b64encode(data).decode() for key, data in vectors.items()}
        try:
            self._cache.set_many(texts, timeout=max(1, int(self._kept_s)))
        except Exception as error:
            self._pause.begin(error)


def configured() -> SharedVectors | None:
    """The shared vectors of this installation; None without a Redis, or where nothing is kept."""
    kept_s = settings.MEMORY_EMBEDDING_CACHE_TTL_MS / 1000
    return SharedVectors(kept_s) if settings.REDIS_URL and kept_s > 0 else None


def _name(key: str) -> str:
    # Names of models may hold what a cache takes in no key.
    return f"query-vector:{hashlib.sha256(key.encode()).hexdigest()}"
