"""Redis, where ``REDIS_URL`` names one: the cache that processes share."""

from __future__ import annotations

import json
from typing import Any, Final
from urllib.parse import urlsplit

from memstudio import env
from memstudio.errors import StartError

ANSWER_WITHIN_S: Final = 0.2
"""A cache that is slower than this is not worth asking."""
PREFIX: Final = "memory-studio"


def url(name: str) -> str:
    """The address in a variable, or nothing. Raises ``StartError`` when it is none of Redis."""
    value = env.secret(name) or ""
    if value and urlsplit(value).scheme not in ("redis", "rediss"):
        # It may carry a password: it is never repeated.
        raise StartError(f"{name} must read redis://:password@host:6379/0, or rediss://… with TLS.")
    return value


def cache(address: str) -> dict[str, Any]:
    """The entry ``default`` of Django's CACHES; the memory of the process without an address."""
    if not address:
        return {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}
    return {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": address,
        "KEY_PREFIX": PREFIX,
        "OPTIONS": {
            "serializer": "memstudio.redis.JsonSerializer",
            "socket_timeout": ANSWER_WITHIN_S,
            "socket_connect_timeout": ANSWER_WITHIN_S,
        },
    }


class JsonSerializer:
    """Values as JSON: what someone else wrote into Redis is never run, as a pickle would be."""

    def dumps(self, value: object) -> bytes | int:
        """The value as it is stored; whole numbers stay countable."""
        return value if type(value) is int else json.dumps(value).encode()

    def loads(self, stored: bytes) -> Any:
        """The value again."""
        return json.loads(stored)
