"""Reads the answers of rerank servers, trusting nothing in them."""

from __future__ import annotations

import math
import sys
from typing import NoReturn

from engine.errors import RerankFailed
from engine.net.strict_json import Json

INVALID = "invalid_response"


def results(answer: Json, *, count: int) -> list[float]:
    """Scores by place, of ``{results: [{index, relevance_score}, …]}`` (second seed).

    Every candidate exactly once: raises ``RerankFailed`` (``invalid_response``) for anything
    missing, unknown, doubled or not a number, rather than order by half an answer.
    """
    found: dict[int, float] = {}
    for index, score in _items(_listed(answer), "relevance_score"):
        if index in found or not 0 <= index < count:
            _refuse("an unknown or repeated candidate")
        found[index] = score
    if len(found) != count:
        _refuse("too few candidates")
    return [found[place] for place in range(count)]


def lenient_results(answer: Json, *, count: int) -> list[float]:
    """The same shape from services that may leave candidates out (Cohere, Jina).

    Unknown and repeated candidates are passed over; those that are not mentioned get a score just
    below the others', so that they keep their order behind them. Raises ``RerankFailed`` when
    nothing of use is left.
    """
    return _completed(_items(_listed(answer), "relevance_score"), count)


def listed_data(answer: Json, *, count: int) -> list[float]:
    """The same of ``{data: [{index, relevance_score}, …]}`` (Voyage)."""
    return _completed(_items(_listed(answer, "data"), "relevance_score"), count)


def bare_scores(answer: Json, *, count: int) -> list[float]:
    """Scores by place, of a bare ``[{index, score}, …]`` (Text Embeddings Inference)."""
    if not isinstance(answer, list):
        _refuse("no list of scores")
    return _completed(_items(answer, "score"), count)


def _completed(items: list[tuple[int, float]], count: int) -> list[float]:
    found: dict[int, float] = {}
    for index, score in items:
        if 0 <= index < count:
            found.setdefault(index, score)
    if not found:
        _refuse("no candidate")
    behind = max(-sys.float_info.max, math.nextafter(min(found.values()), -math.inf))
    return [found.get(place, behind) for place in range(count)]


def _listed(answer: Json, name: str = "results") -> list[Json]:
    found = answer.get(name) if isinstance(answer, dict) else None
    if not isinstance(found, list):
        _refuse("no results")
    return found


def _items(items: list[Json], field: str) -> list[tuple[int, float]]:
    return [_item(item, field) for item in items]


def _item(item: Json, field: str) -> tuple[int, float]:
    if not isinstance(item, dict):
        _refuse("an item that is no object")
    index, score = item.get("index"), item.get(field)
    # A bool is an int to Python, and 1.0 equals 1: only the exact type counts.
    if type(index) is not int:
        _refuse("an item without index")
    if isinstance(score, bool) or not isinstance(score, int | float):
        _refuse("an item without score")
    try:
        return index, float(score)
    except OverflowError:
        _refuse("a score that is no number")


def _refuse(what: str) -> NoReturn:
    raise RerankFailed(f"The reranker sent {what}.", code=INVALID)
