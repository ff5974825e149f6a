"""The catalogue of services: one file, read once.

It says what is known and is no list of what is allowed: a model that is not in it can be used, its
dimension is asked for then.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from engine.errors import EngineError
from engine.providers.speech import ProviderProtocol

CATALOGUE: Final = Path(__file__).with_name("catalogue.json")
COMPATIBLE: Final = "compatible"


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """An embedding model of a service. Figures that are not known are None.

    ``dimensions`` is what it answers unless another of ``choices`` is asked for.
    """

    id: str
    dimensions: int | None = None
    max_tokens: int | None = None
    choices: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Service:
    """One service. ``base_url`` is empty where everybody has an own one.

    ``variable`` names the environment variable that its own clients read. ``model_patterns`` are
    those of its chat models, as far as their names tell them. ``batch_texts`` and
    ``batch_tokens`` are the most that one embedding request takes.
    """

    id: str
    title: str
    base_url: str
    protocol: ProviderProtocol
    needs_key: bool
    variable: str
    chat: bool
    rerank: bool
    model_patterns: tuple[str, ...]
    batch_texts: int | None
    batch_tokens: int | None
    embedding_models: tuple[EmbeddingModel, ...]
    rerank_models: tuple[str, ...]

    def embedding_model(self, model: str) -> EmbeddingModel | None:
        """What is known of a model; None for one that is not in the catalogue."""
        return next((entry for entry in self.embedding_models if entry.id == model), None)


@cache
def services() -> tuple[Service, ...]:
    """Every service of the catalogue, in its order."""
    document = json.loads(CATALOGUE.read_text(encoding="utf-8"))
    return tuple(_service(row) for row in document["services"])


def find(kind: str) -> Service:
    """The service of a kind. Raises ``EngineError`` (``unknown_kind``)."""
    for service in services():
        if service.id == kind:
            return service
    raise EngineError("There is no provider of this kind.", code="unknown_kind")


def _service(row: dict[str, Any]) -> Service:
    values = dict(row)
    values["protocol"] = ProviderProtocol(row["protocol"])
    for name in ("model_patterns", "rerank_models"):
        values[name] = tuple(row[name])
    values["embedding_models"] = tuple(
        EmbeddingModel(**{**model, "choices": tuple(model.get("choices", ()))})
        for model in row["embedding_models"]
    )
    return Service(**values)
