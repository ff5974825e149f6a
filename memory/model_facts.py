"""What the catalogue knows of the model behind a vector index."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from django.conf import settings as django_settings

from engine.embed import catalogue
from engine.embed.catalogue import ModelEntry
from engine.errors import EmbeddingFailed
from memory.models import VectorIndex

LOCAL_FAMILIES: Final = frozenset({"local", "static"})
"""Sources whose models are in the catalogue."""


def models_dir() -> Path:
    """Where models live that were installed or repacked."""
    chosen = django_settings.MEMORY_STATIC_CACHE_DIR
    return Path(chosen) if chosen else Path(django_settings.MEMORY_STUDIO_HOME) / "models"


def id_of(reference: str, entries: Iterable[ModelEntry] | None = None) -> str:
    """The id of a model that is named by it or by its repository on a hub, among these entries
    (those of the product); another name stays as it is."""
    tail = reference.rpartition("/")[2].casefold()
    known = catalogue.entries() if entries is None else entries
    return next((entry.id for entry in known if entry.id.casefold() == tail), reference)


def entry_of(row: VectorIndex) -> ModelEntry | None:
    """The catalogue's entry of an index's model; None for remote models, of which it knows none."""
    if row.source not in LOCAL_FAMILIES:
        return None
    try:
        return catalogue.find(row.model, models_dir())
    except EmbeddingFailed:
        return None
