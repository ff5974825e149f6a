"""Typed readers of environment variables.

An unset or blank variable counts as the default. An odd value never counts as anything: it raises
``StartError`` with one sentence that names the variable, so that a typing error is seen at once.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from memstudio.errors import StartError

_TRUE: Final = frozenset({"1", "true", "yes", "on"})
_FALSE: Final = frozenset({"0", "false", "no", "off"})


def text(name: str, default: str = "") -> str:
    """The value without blanks around it."""
    return os.environ.get(name, "").strip() or default


def choice(name: str, default: str, choices: tuple[str, ...]) -> str:
    """One of ``choices``, in any case."""
    value = text(name, default).lower()
    if value not in {entry.lower() for entry in choices}:
        raise StartError(f"{name} must be one of {', '.join(choices)}, not {value!r}.")
    return next(entry for entry in choices if entry.lower() == value)


def flag(name: str, default: bool) -> bool:
    """A yes or no: 1/true/yes/on or 0/false/no/off, in any case."""
    value = text(name).lower()
    if not value:
        return default
    if value in _TRUE or value in _FALSE:
        return value in _TRUE
    raise StartError(f"{name} must be true or false, not {value!r}.")


def integer(name: str, default: int, *, low: int | None = None, high: int | None = None) -> int:
    """A whole number within the bounds."""
    value = text(name)
    if not value:
        return default
    try:
        number = int(value)
    except ValueError:
        raise StartError(f"{name} must be a whole number, not {value!r}.") from None
    if low is not None and number < low:
        raise StartError(f"{name} must be at least {low}, not {number}.")
    if high is not None and number > high:
        raise StartError(f"{name} must be at most {high}, not {number}.")
    return number


def texts(name: str, default: tuple[str, ...] = ()) -> list[str]:
    """Values separated by commas; blank ones are left out."""
    value = text(name)
    if not value:
        return list(default)
    return [entry.strip() for entry in value.split(",") if entry.strip()]


def secret(name: str) -> str | None:
    """A secret from NAME, or from the file that NAME_FILE names; None without either.

    Messages never repeat the value.
    """
    value, file_name = text(name), text(f"{name}_FILE")
    if value and file_name:
        raise StartError(f"Set {name} or {name}_FILE, not both.")
    if not file_name:
        return value or None
    try:
        value = Path(file_name).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        raise StartError(f"{name}_FILE names a file that cannot be read: {file_name}.") from None
    if not value:
        raise StartError(f"{name}_FILE names an empty file: {file_name}.")
    return value


def traces() -> bool:
    """Whether the standard variables of OpenTelemetry name a collector that spans go to."""
    named = text("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") or text("OTEL_EXPORTER_OTLP_ENDPOINT")
    is_off = text("OTEL_SDK_DISABLED").lower() == "true" or text("OTEL_TRACES_EXPORTER") == "none"
    if not named or is_off:
        return False
    for name in ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        if text(name, "http/protobuf") != "http/protobuf":
            raise StartError(f"{name} must be http/protobuf: nothing else is spoken here.")
    return True


def origin(name: str) -> str:
    """The address of a server: ``http://host:port`` or ``https://…``, and nothing behind it."""
    value = text(name).rstrip("/")
    if not value:
        return ""
    try:
        parts = urlsplit(value)
        is_origin = bool(parts.hostname) and parts.port != 0 and "@" not in parts.netloc
    except ValueError:
        is_origin = False
    if not is_origin or value not in (f"{kind}://{parts.netloc}" for kind in ("http", "https")):
        raise StartError(f"{name} must be http://host:port or https://host:port, and no more.")
    return value


def prefixed(prefix: str) -> dict[str, str]:
    """Every set variable whose name starts with ``prefix``, under its whole name."""
    return {name: value for name, value in os.environ.items() if name.startswith(prefix)}
