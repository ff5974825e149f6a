"""Reads the answer of an OpenAI-compatible ``/embeddings`` endpoint, trusting nothing in it."""

from __future__ import annotations

from typing import NoReturn

import numpy as np
import numpy.typing as npt

from engine.embed.pooling import unit_rows
from engine.errors import EmbeddingFailed
from engine.net.strict_json import Json
from engine.types import Matrix


def vectors(answer: Json, *, count: int, dim: int | None) -> Matrix:
    """Unit vectors in the order of the texts, shape ``(count, dim)``.

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
    lengths = {len(row) for row in rows.values()} | ({dim} if dim is not None else set())
    if len(lengths) != 1:
        _refuse("vectors of another dimension")
    with np.errstate(over="ignore"):
        matrix: npt.NDArray[np.float64] = np.array([rows[place] for place in range(count)])
    return unit_rows(matrix)


def _item(item: Json) -> tuple[int, list[float]]:
    if not isinstance(item, dict):
        _refuse("an item that is no object")
    index, row = item.get("index"), item.get("embedding")
    # A bool is an int to Python, and 1.0 equals 1: only the exact type counts.
    if type(index) is not int or not isinstance(row, list) or not row:
        _refuse("an item without index or vector")
    return index, [_number(value) for value in row]


def _number(value: Json) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        _refuse("a value that is no number")
    try:
        return float(value)
    except OverflowError:
        _refuse("a value that is no number")


def _refuse(what: str) -> NoReturn:
    raise EmbeddingFailed(f"The server sent {what}.", code="invalid_response")
