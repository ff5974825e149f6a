"""What the catalogue knows of the model behind a vector index."""

from __future__ import annotations

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
    return Path(django_settings.MEMORY_STUDIO_HOME) / "models"


def entry_of(row: VectorIndex) -> ModelEntry | None:
    """The catalogue's entry of an index's model; None for remote models, of which it knows none."""
    if row.source not in LOCAL_FAMILIES:
        return None
    try:
        return catalogue.find(row.model, models_dir())
    except EmbeddingFailed:
        return None
