"""What clients of LangGraph's store send."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import Field

Limit = Annotated[int, Field(ge=1, le=1000)]
Offset = Annotated[int, Field(ge=0, le=1_000_000_000)]


class Put(Schema):
    """An item to store."""

    namespace: list[str]
    key: str
    value: dict[str, Any]
    index: Literal[False] | list[str] | None = None
    ttl: float | None = None


class Delete(Schema):
    """An item to delete."""

    namespace: list[str]
    key: str


class GetQuery(Schema):
    """An item to read; the namespace has dots between its labels."""

    key: str
    namespace: str
    refresh_ttl: bool | None = None


class Search(Schema):
    """Items to find."""

    namespace_prefix: list[str] = Field(default_factory=list)
    filter: dict[str, Any] | None = None
    limit: Limit | None = None
    offset: Offset | None = None
    query: str | None = None
    refresh_ttl: bool | None = None


class Namespaces(Schema):
    """Namespaces to list."""

    prefix: list[str] | None = None
    suffix: list[str] | None = None
    max_depth: Annotated[int, Field(ge=1)] | None = None
    limit: Limit | None = None
    offset: Offset | None = None
