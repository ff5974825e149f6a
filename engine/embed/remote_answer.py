"""Reads the answers of embedding servers, trusting nothing in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from engine.embed.pooling import unit_rows
from engine.errors import EmbeddingFailed
from engine.net.strict_json import Json
from engine.types import Matrix


def vectors(answer: Json, *, count: int, dim: int | None) -> Matrix:
    """Unit vectors of an OpenAI-compatible answer in the order of the texts: ``(count, dim)``.

    The order follows ``index``, not the position. ``dim`` None accepts any one length. Raises
    ``EmbeddingFailed`` (``invalid_response``) for anything missing, doubled, ragged, zero or not
    a number.
    """
    items = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(items, list) or len(items) != count:
        _refuse("a wrong number of vectors")
    rows: dict[int, list[float]] = {}
    for item in items:
        index, row = _item(item)
        rows[index] = row
    if set(rows) != set(range(count)):
        _refuse("wrong indexes")
    return _matrix([rows[place] for place in range(count)], dim)


def gemini_vector(answer: Json, *, count: int, dim: int | None) -> Matrix:
    """The unit vector of an ``embedContent`` answer: shape ``(1, dim)``. Raises as ``vectors``."""
    found = answer.get("embedding") if isinstance(answer, dict) else None
    if count != 1:
        _refuse("a wrong number of vectors")
    return _matrix([_values(found)], dim)


def gemini_vectors(answer: Json, *, count: int, dim: int | None) -> Matrix:
    """Unit vectors of a ``batchEmbedContents`` answer, in its order. Raises as ``vectors``."""
    items = answer.get("embeddings") if isinstance(answer, dict) else None
    if not isinstance(items, list) or len(items) != count:
        _refuse("a wrong number of vectors")
    return _matrix([_values(item) for item in items], dim)


def cohere_vectors(answer: Json, *, count: int, dim: int | None) -> Matrix:
    """Unit vectors of a ``/v2/embed`` answer, in its order. Raises as ``vectors``."""
    by_type = answer.get("embeddings") if isinstance(answer, dict) else None
    rows = by_type.get("float") if isinstance(by_type, dict) else None
    if not isinstance(rows, list) or len(rows) != count:
        _refuse("a wrong number of vectors")
    return _matrix([_numbers(row) for row in rows], dim)


def _matrix(rows: Sequence[Sequence[float]], dim: int | None) -> Matrix:
    lengths = {len(row) for row in rows} | ({dim} if dim is not None else set())
    if len(lengths) != 1:
        _refuse("vectors of another dimension")
    with np.errstate(over="ignore"):
        matrix: npt.NDArray[np.float64] = np.array(rows)
    return unit_rows(matrix)


def _item(item: Json) -> tuple[int, list[float]]:
    if not isinstance(item, dict):
        _refuse("an item that is no object")
    index = item.get("index")
    # A bool is an int to Python, and 1.0 equals 1: only the exact type counts.
    if type(index) is not int:
        _refuse("an item without index")
    return index, _numbers(item.get("embedding"))


def _values(item: Json) -> list[float]:
    return _numbers(item.get("values") if isinstance(item, dict) else None)


def _numbers(row: Json) -> list[float]:
    if not isinstance(row, list) or not row:
        _refuse("an item without vector")
    return [_number(value) for value in row]


def _number(value: Json) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        _refuse("a value that is no number")
    try:
        return float(value)
    except OverflowError:
        _refuse("a value that is no number")


def _refuse(what: str) -> NoReturn:
    raise EmbeddingFailed(f"The server sent {what}.", code="invalid_response")
