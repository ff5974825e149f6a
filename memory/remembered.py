"""Small figures that pages show again, in the cache that all processes share.

A cache that fails remembers nothing, and no page fails or waits for it.
"""

from __future__ import annotations

from typing import Any, Final

from django.core.cache import cache

from memory.pause import Pause

_pause: Final = Pause("the shared cache")


def recall(name: str) -> Any:
    """What was remembered under a name; None when nothing is there."""
    if _pause.is_on:
        return None
    try:
        found = cache.get(name)
    except Exception as error:
        _pause.begin(error)
        return None
    _pause.end()
    return found


def remember(name: str, value: Any, seconds: int) -> None:
    """Keep a value that JSON can hold for a while."""
    if _pause.is_on:
        return
    try:
        cache.set(name, value, seconds)
    except Exception as error:
        _pause.begin(error)
