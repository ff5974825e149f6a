"""Secrets in backend configurations: sealed in the database, masked for readers.

Keys and the values of headers are secret. Stored they are ``{"sealed": …}``; shown they are a
mask, and a mask that comes back means: as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from memory import secretbox

SEALED: Final = "sealed"
SHOWN_FROM: Final = 12
"""Length from which the last four characters of a secret may be shown."""

Config = Mapping[str, Any]
Change = Callable[[Any, Any], Any]


def sealed(configs: Mapping[str, Config], stored: Mapping[str, Any]) -> dict[str, Any]:
    """Configurations as they are stored. ``stored`` are those that their masks refer to."""
    return {
        name: _each_secret(config, _mapping(stored.get(name)), _seal)
        for name, config in configs.items()
    }


def shown(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Stored configurations for readers: every secret is a mask."""
    return {name: _each_secret(_mapping(config), {}, _mask) for name, config in stored.items()}


def opened(config: Any) -> dict[str, Any]:
    """One stored configuration with its secrets, for building the backend."""
    return _each_secret(_mapping(config), {}, lambda value, _earlier: _open(value))


def mask(secret: str) -> str:
    """Three stars, with the last four characters of a secret that is long enough."""
    return f"***{secret[-4:]}" if len(secret) >= SHOWN_FROM else "***"


def _each_secret(config: Config, earlier: Config, change: Change) -> dict[str, Any]:
    found = dict(config)
    if found.get("apiKey"):
        found["apiKey"] = change(found["apiKey"], earlier.get("apiKey"))
    if isinstance(found.get("headers"), Mapping):
        known = _mapping(earlier.get("headers"))
        found["headers"] = {
            name: change(value, known.get(name)) for name, value in found["headers"].items()
        }
    return found


def _seal(value: Any, earlier: Any) -> Any:
    if not isinstance(value, str):
        return value
    if earlier is not None and value == mask(_open(earlier)):
        return earlier
    return {SEALED: secretbox.seal(value)}


def _mask(value: Any, _earlier: Any) -> str:
    return mask(_open(value))


def _open(value: Any) -> str:
    """The secret of a stored value; one that was stored as plain text is itself."""
    if isinstance(value, Mapping):
        return secretbox.open_sealed(str(value.get(SEALED, "")))
    return value if isinstance(value, str) else ""


def _mapping(value: Any) -> Config:
    return value if isinstance(value, Mapping) else {}
