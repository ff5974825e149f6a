"""The list of known local models. ``catalogue.json`` is the one place that names their files."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from engine.embed.prompts import Prompts
from engine.errors import EmbeddingFailed


@dataclass(frozen=True, slots=True)
class ModelFile:
    """One file a model is made of: which package carries it, where, and what it must hash to."""

    package: str
    version: str
    module: str
    path: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """One model. ``pooling`` is ``mean``, or ``model`` when the model pools itself.

    ``max_tokens`` None means no limit. ``revision`` names the weights and, for a repacked model,
    the version of the repack; it is part of the signature.
    """

    id: str
    kind: str
    title: str
    dimension: int
    max_tokens: int | None
    languages: tuple[str, ...]
    prompts: Prompts
    pooling: str
    licence: str
    revision: str
    files: tuple[ModelFile, ...]


@cache
def entries() -> tuple[ModelEntry, ...]:
    """Every model of the catalogue, in the order of the file."""
    text = files("engine.embed").joinpath("catalogue.json").read_text(encoding="utf-8")
    found: list[ModelEntry] = []
    for raw in json.loads(text)["models"]:
        raw["languages"] = tuple(raw["languages"])
        raw["prompts"] = Prompts(**raw["prompts"])
        raw["files"] = tuple(ModelFile(**file) for file in raw["files"])
        found.append(ModelEntry(**raw))
    return tuple(found)


def find(model_id: str) -> ModelEntry:
    """The entry of a model. Raises ``EmbeddingFailed`` (``model_load_failed``) when unknown."""
    for entry in entries():
        if entry.id == model_id:
            return entry
    raise EmbeddingFailed("This model is not in the catalogue.", code="model_load_failed")
