"""The one table of providers: those of the environment, of ``config.toml``, and of the studio.

A variable sets one field, whatever else says it; a provider of the file stands before one of the
studio with the same name, which is then not used.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, Literal

from django.conf import settings as django_settings

from engine.providers import catalogue
from engine.providers.spec import ProviderSpec, is_ours, is_sendable, problems
from memory import secretbox
from memory.backend_secrets import mask
from memory.models import Provider

Origin = Literal["environment", "config", "studio"]
ENVIRONMENT: Final = "MEMORY_STUDIO_PROVIDER_FIELDS"
CONFIG: Final = "MEMORY_STUDIO_PROVIDERS"


@dataclass(frozen=True, slots=True)
class Entry:
    """One provider in force, and where it comes from.

    ``fixed`` names the fields that variables set. ``uid``, ``revision`` and the dates are those of
    the row of the studio; None for the others.
    """

    spec: ProviderSpec
    origin: Origin
    fixed: frozenset[str] = frozenset()
    uid: str | None = None
    revision: int | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    problems: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What stands before the slash of ``provider/model``."""
        return self.spec.name

    @property
    def id(self) -> str:
        """The id of its row, or its name where it has none."""
        return self.uid or self.spec.name

    @property
    def key(self) -> str:
        """The credential; empty without one. Never show it."""
        return key_of(self.spec)

    @property
    def masked_key(self) -> str | None:
        """A credential that was given, for readers; None without one.

        Of a variable nothing is shown: it may hold anything.
        """
        return mask(self.spec.api_key) if self.spec.api_key else None

    @property
    def is_read_only(self) -> bool:
        """Whether the studio cannot change it."""
        return self.origin != "studio"

    @property
    def is_usable(self) -> bool:
        """Whether it is switched on and whole."""
        return self.spec.enabled and not self.problems


def key_of(spec: ProviderSpec) -> str:
    """The credential of a provider: as it is given, or from the variable that is named."""
    key = spec.api_key
    if not key and spec.key_variable and not is_ours(spec.key_variable):
        key = os.environ.get(spec.key_variable, "").strip()
    return key if is_sendable(key) else ""


def table() -> list[Entry]:
    """Every provider in the order in which they are asked. One small query."""
    variables: Mapping[str, Mapping[str, Any]] = getattr(django_settings, ENVIRONMENT, {})
    file: list[ProviderSpec] = getattr(django_settings, CONFIG, [])
    written = {spec.name: Entry(spec, "config") for spec in file}
    kept = {row.name: of_row(row) for row in Provider.objects.all()}
    found = {**kept, **written}
    alone = [name for name in variables if name not in found]
    order = [*alone, *written, *(name for name in kept if name not in written)]
    return [_with_variables(name, found.get(name), variables.get(name, {})) for name in order]


def find(name: str) -> Entry | None:
    """The provider of a name."""
    return next((entry for entry in table() if entry.name == name), None)


def of_row(row: Provider) -> Entry:
    """A row of the studio by itself."""
    spec = spec_of(row)
    return Entry(
        spec,
        "studio",
        uid=str(row.uid),
        revision=row.revision,
        created_at=row.created_at,
        updated_at=row.updated_at,
        problems=problems(spec),
    )


def spec_of(row: Provider) -> ProviderSpec:
    """What a row says, its credential opened."""
    return ProviderSpec(
        name=row.name,
        kind=row.kind,
        base_url=row.base_url,
        protocol=row.protocol,
        api_key=secretbox.open_sealed(row.sealed_key),
        key_variable=row.key_variable,
        models=tuple(row.model_names),
        enabled=row.is_enabled,
    )


def _with_variables(name: str, entry: Entry | None, fields: Mapping[str, Any]) -> Entry:
    if entry is None:
        known = {service.id for service in catalogue.services()}
        bare = ProviderSpec(name, name if name in known else catalogue.COMPATIBLE)
        entry = Entry(bare, "environment")
    if not fields:
        return entry
    # A key from a variable replaces whichever credential was written down.
    cleared: Mapping[str, Any] = {"key_variable": ""} if "api_key" in fields else {}
    spec = replace(entry.spec, **{**cleared, **fields})
    return replace(entry, spec=spec, fixed=frozenset(fields), problems=problems(spec))
