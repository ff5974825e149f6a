"""Reading and changing the settings of extraction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memory import extraction_settings, wiring
from memory.extraction_settings import EXTRACTION_FIELDS, ExtractionSettings
from memory.principal import Principal
from memory.services import settings


def get() -> ExtractionSettings:
    """The settings in force."""
    return extraction_settings.normalise(wiring.stored_values())


def as_json(chosen: ExtractionSettings) -> dict[str, Any]:
    """The settings under their API names."""
    return {entry.api: getattr(chosen, entry.name) for entry in EXTRACTION_FIELDS}


def update(principal: Principal, changes: Mapping[str, Any]) -> ExtractionSettings:
    """Change settings by API name. Values are validated by the caller's schema."""
    settings.store_fields(principal, changes, EXTRACTION_FIELDS)
    return get()
