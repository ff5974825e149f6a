"""Providers that are set up outside of the studio: in the environment, and in ``config.toml``.

``MEMORY_STUDIO_PROVIDER_<NAME>_<FIELD>`` sets one field of a provider, wherever the rest of it is
written down. ``<home>/config.toml`` has a table ``[[providers]]`` for each. Both are read at start.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from engine.providers import catalogue, spec
from engine.providers.spec import ProviderSpec
from memstudio import env
from memstudio.errors import StartError

PREFIX: Final = "MEMORY_STUDIO_PROVIDER_"
CONFIG_NAME: Final = "config.toml"
SUFFIXES: Final = (
    "KIND",
    "BASE_URL",
    "PROTOCOL",
    "API_KEY",
    "API_KEY_FILE",
    "MODELS",
    "ENABLED",
)
"""How the name of a variable ends: the field that it sets."""
KEYS: Final = frozenset(
    ("name", "kind", "base_url", "protocol", "api_key_env", "models", "enabled")
)
"""What a table of the file may hold."""
_VARIABLE: Final = re.compile(PREFIX + rf"([A-Z0-9_]+?)_({'|'.join(SUFFIXES)})")

Fields = dict[str, Any]


def from_environment() -> dict[str, Fields]:
    """The fields that variables set, by name of the provider. Raises ``StartError``."""
    found: dict[str, Fields] = {}
    for variable in sorted(os.environ):
        if not variable.startswith(PREFIX):
            continue
        match = _VARIABLE.fullmatch(variable)
        if match is None:
            raise StartError(f"{variable} sets nothing that a provider has.")
        name = match[1].lower().replace("_", "-")
        field, value = _field(variable, match[2])
        if value is not None:
            found.setdefault(name, {})[field] = value
    for name, fields in found.items():
        _check(_alone(name, fields), PREFIX + name.upper().replace("-", "_"), fields)
    return found


def from_file(home: Path) -> list[ProviderSpec]:
    """The providers of ``config.toml``, in its order. Raises ``StartError``."""
    path = home / CONFIG_NAME
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise StartError(f"{path} cannot be read: {error}.") from None
    rows = document.get("providers", [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise StartError(f"{path}: providers are tables, each written as [[providers]].")
    found = [_from_table(path, row) for row in rows]
    if len({entry.name for entry in found}) != len(found):
        raise StartError(f"{path}: two providers have the same name.")
    return found


def _field(variable: str, name: str) -> tuple[str, Any]:
    """What one variable sets; None for a blank one."""
    if name == "ENABLED":
        is_set = bool(env.text(variable))
        return "enabled", env.flag(variable, True) if is_set else None
    if name == "MODELS":
        return "models", tuple(env.texts(variable)) or None
    if name.startswith("API_KEY"):
        return "api_key", env.secret(variable.removesuffix("_FILE"))
    return name.lower(), env.text(variable) or None


def _alone(name: str, fields: Mapping[str, Any]) -> ProviderSpec:
    """A provider of these fields and nothing else; its kind is its name where that is one."""
    known = {service.id for service in catalogue.services()}
    kind = name if name in known else catalogue.COMPATIBLE
    return ProviderSpec(**{"name": name, "kind": kind, **fields})


def _from_table(path: Path, row: Mapping[str, Any]) -> ProviderSpec:
    name = str(row.get("name", ""))
    where = f"{path}, provider {name!r}"
    if "api_key" in row:
        raise StartError(f"{where}: a key does not belong in the file; name its api_key_env.")
    if unknown := sorted(set(row) - KEYS):
        raise StartError(f"{where}: {unknown[0]} is not known.")
    for key, value in row.items():
        _check_type(where, key, value)
    fields = {key: value for key, value in row.items() if key not in ("name", "api_key_env")}
    fields["models"] = tuple(row.get("models", ()))
    found = replace(_alone(name, fields), key_variable=row.get("api_key_env", ""))
    _check(found, where, {})
    return found


def _check_type(where: str, key: str, value: object) -> None:
    if key == "models":
        is_fine = isinstance(value, list) and all(isinstance(entry, str) for entry in value)
    else:
        is_fine = isinstance(value, bool if key == "enabled" else str)
    if not is_fine:
        raise StartError(f"{where}: {key} has a value of the wrong type.")


def _check(found: ProviderSpec, where: str, fields: Mapping[str, Any]) -> None:
    """Refuse what cannot be. Fields that a provider elsewhere completes may lack its address."""
    for name, code in spec.problems(found).items():
        is_completed = name == "base_url" and code == "missing" and bool(fields)
        if not is_completed:
            raise StartError(f"{where}: {name} cannot be as it is ({code}).")
