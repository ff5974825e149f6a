"""Services that are told what a text is for: Cohere, Voyage and Jina; and Azure's own header.

They put their own prompt around a text by its purpose, so ours stay away.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from engine.embed import remote_answer
from engine.embed.endpoint import Endpoint, batch_of, bearer
from engine.net.strict_json import Json
from engine.types import Matrix, Purpose

COHERE_TYPES: Final = {Purpose.QUERY: "search_query", Purpose.DOCUMENT: "search_document"}
VOYAGE_TYPES: Final = {Purpose.QUERY: "query", Purpose.DOCUMENT: "document"}
JINA_TASKS: Final = {Purpose.QUERY: "retrieval.query", Purpose.DOCUMENT: "retrieval.passage"}
WITHOUT_TASK: Final = re.compile(r"jina-embeddings?-(v1|v2|[a-z]-)|jina-clip-v1")
"""Models of Jina that know no tasks."""


class Cohere:
    """``/v2/embed``: texts with ``input_type``; the answer keeps vectors by their type."""

    identity = "input types"

    def __init__(self, endpoint: Endpoint, url: str) -> None:
        self.url = url
        self.headers: Mapping[str, str] = bearer(endpoint.api_key)
        self.batch_texts = batch_of(endpoint)
        self._model = endpoint.model.strip()
        self._dimensions = endpoint.dimensions

    def body(self, texts: Sequence[str], purpose: Purpose) -> Mapping[str, object]:
        body: dict[str, object] = {
            "model": self._model,
            "texts": list(texts),
            "input_type": COHERE_TYPES[purpose],
            "embedding_types": ["float"],
        }
        if self._dimensions is not None:
            body["output_dimension"] = self._dimensions
        return body

    def read(self, answer: Json, *, count: int, dim: int | None) -> Matrix:
        return remote_answer.cohere_vectors(answer, count=count, dim=dim)


class _Listed:
    """What answers like OpenAI's and has the purpose in a field of its own."""

    field = ""
    values: Mapping[Purpose, str] = {}
    dimension_field = ""
    identity = ""

    def __init__(self, endpoint: Endpoint, url: str) -> None:
        self.url = url
        self.headers: Mapping[str, str] = bearer(endpoint.api_key)
        self.batch_texts = batch_of(endpoint)
        self._model = endpoint.model.strip()
        self._dimensions = endpoint.dimensions

    def body(self, texts: Sequence[str], purpose: Purpose) -> Mapping[str, object]:
        body: dict[str, object] = {"model": self._model, "input": list(texts)}
        if self.values:
            body[self.field] = self.values[purpose]
        if self._dimensions is not None:
            body[self.dimension_field] = self._dimensions
        return body

    def read(self, answer: Json, *, count: int, dim: int | None) -> Matrix:
        return remote_answer.vectors(answer, count=count, dim=dim)


class Voyage(_Listed):
    """``/embeddings`` with ``input_type``."""

    field = "input_type"
    values = VOYAGE_TYPES
    dimension_field = "output_dimension"
    identity = "input types"


class Jina(_Listed):
    """``/embeddings`` with ``task``, for the models that know tasks."""

    field = "task"
    dimension_field = "dimensions"

    def __init__(self, endpoint: Endpoint, url: str) -> None:
        super().__init__(endpoint, url)
        if not WITHOUT_TASK.match(self._model):
            self.values, self.identity = JINA_TASKS, "tasks"
