"""Models that can run on this machine: which are installed, and how to get the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from engine.embed import catalogue
from engine.embed.catalogue import ModelEntry
from engine.errors import EmbeddingFailed
from memory import wiring
from memory.model_facts import models_dir
from memory.principal import Principal
from memory.services import access

INSTALL: Final = "python manage.py rag model-install {id}"


@dataclass(frozen=True, slots=True)
class LocalModel:
    """One model of the catalogue.

    ``use`` is what it is for, ``dimensions`` every length of its vectors; ``command`` installs it,
    and is empty for one that comes with the packages.
    """

    id: str
    title: str
    use: Literal["embedding", "reranker"]
    dimension: int | None
    dimensions: tuple[int, ...]
    languages: tuple[str, ...]
    licence: str
    megabytes: float
    is_installed: bool
    is_chosen: bool
    command: str


def local_models(principal: Principal) -> list[LocalModel]:
    """Every model that is known here, those that are installed first."""
    access.require(principal, "read")
    chosen = wiring.settings().local_model
    found = [_model(entry, chosen) for entry in _entries()]
    return sorted(found, key=lambda model: not model.is_installed)


def installed_embedders() -> list[tuple[str, str]]:
    """Id and title of every embedding model that could embed now."""
    return [(entry.id, entry.title) for entry in _entries() if entry.dimensions and _is_here(entry)]


def _entries() -> tuple[ModelEntry, ...]:
    try:
        return catalogue.entries(models_dir())
    except EmbeddingFailed:
        # The studio's own list is broken; the models of the product are not.
        return catalogue.entries()


def _is_here(entry: ModelEntry) -> bool:
    # Not at the top: what runs models is heavy, and most processes only read settings.
    from engine.embed.local import is_available

    return is_available(entry, models_dir())


def _model(entry: ModelEntry, chosen: str) -> LocalModel:
    return LocalModel(
        id=entry.id,
        title=entry.title,
        use="embedding" if entry.dimensions else "reranker",
        dimension=entry.dimension if entry.dimensions else None,
        dimensions=entry.dimensions,
        languages=entry.languages,
        licence=entry.licence,
        megabytes=round(entry.bytes / 1e6, 1),
        is_installed=_is_here(entry),
        is_chosen=entry.id == chosen,
        command="" if entry.is_packaged else INSTALL.format(id=entry.id),
    )
