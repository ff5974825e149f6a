"""Shapes of the tokenizer lens and of why-not."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from memory.api.schemas.base import NonEmpty, Shape, Strict, Text
from memory.api.schemas.engine import PreviewIn, Resolution


class LensIn(Strict):
    """POST ``/api/memory/tokenizer-lens``."""

    text: Text
    purpose: Literal["query", "document"] = "query"


class LensTokenOut(Shape):
    """One piece of the text at ``start`` to ``end`` (code points), and the term it gives."""

    text: str
    term: str
    kind: str
    start: int
    end: int
    indexed: bool


class LensOut(Shape):
    """How a text is cut. ``words`` are what ``match: all`` asks for."""

    folded: str
    language: str
    analyzer: str
    tokens: list[LensTokenOut]
    terms: list[str]
    words: list[str]


class WhyNotIn(PreviewIn):
    """POST ``/api/memory/why-not``: a retrieval, and the memory that was expected of it."""

    query: Text = ""
    memory_id: NonEmpty


class Hint(Shape):
    """What would bring the memory."""

    code: str
    message: str


class ListPlaceOut(Shape):
    """Where one list placed the memory; ``reason`` is null when the list brought it."""

    name: str
    rank: int | None
    score: float | None
    depth: int
    last_score: float | None
    short_by: float | None
    reason: str | None
    message: str


class WhyNotDetail(Shape):
    """The figures of the stage that lost it, and where every list had it."""

    rank: int | None
    score: float | None
    last_rank: int | None
    last_score: float | None
    short_by: float | None
    tokens: int | None
    budget_left: int | None
    lists: list[ListPlaceOut]
    matched_terms: list[str]
    missing_terms: list[str]


class WhyNotOut(Shape):
    """What became of one memory; ``stage`` and ``reason`` are null when it was found."""

    memory_id: str
    found: bool
    rank: Annotated[int, Field(ge=1)] | None
    stage: str | None
    reason: str | None
    message: str
    hints: list[Hint]
    detail: WhyNotDetail
    resolution: Resolution | None
