"""What mem0's clients send. Fields that have no meaning here are dropped."""

from __future__ import annotations

from typing import Annotated, Any

from ninja import Schema
from pydantic import Field

Object = dict[str, Any]
Name = str | int | None
MAX_TOP_K = 1000
MAX_MESSAGES = 1000
Messages = Annotated[list[Object], Field(max_length=MAX_MESSAGES)]
"""They are stored in one transaction."""


class Entities(Schema):
    """Users, agents, apps and runs, at the top level or within ``filters``."""

    user_id: Name = None
    agent_id: Name = None
    app_id: Name = None
    run_id: Name = None


class Add(Entities):
    """Messages to remember."""

    messages: Annotated[Messages | Object | str, Field(union_mode="left_to_right")]
    filters: Object | None = None
    metadata: Object | None = None
    infer: bool | None = None
    immutable: bool | None = None
    expiration_date: str | None = None
    timestamp: int | float | str | None = None


class Search(Schema):
    """A search; ``filters`` is needed."""

    query: str
    filters: Object | None = None
    top_k: Annotated[int, Field(ge=1, le=MAX_TOP_K)] | None = None
    limit: Annotated[int, Field(ge=1, le=MAX_TOP_K)] | None = None
    threshold: float | None = None
    fields: list[str] | None = None
    categories: list[str] | None = None
    metadata: Object | None = None
    show_expired: bool | None = None


class List(Schema):
    """A list; ``filters`` is needed."""

    filters: Object | None = None
    start_date: str | None = None
    end_date: str | None = None
    keywords: str | None = None
    categories: list[str] | None = None
    fields: list[str] | None = None
    show_expired: bool | None = None


class Paging(Schema):
    """The page of a list."""

    page: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    page_size: Annotated[int, Field(ge=1, le=200)] = 100


class Change(Schema):
    """What of a memory is to change; ``expiration_date`` null takes it away."""

    text: str | None = None
    metadata: Object | None = None
    timestamp: int | float | str | None = None
    expiration_date: str | None = None


class ChangeOne(Change):
    """One of many changes."""

    memory_id: str


class ChangeMany(Schema):
    """Up to 1,000 changes."""

    memories: list[ChangeOne]


class DeleteOne(Schema):
    """A memory to delete."""

    memory_id: str


class DeleteMany(Schema):
    """Up to 1,000 memories to delete; names of memories or objects with ``memory_id``."""

    memories: list[DeleteOne | str]


class Feedback(Schema):
    """What a client thinks of a memory."""

    memory_id: str
    feedback: str | None = None
    feedback_reason: str | None = None


class EventQuery(Schema):
    """Which events to list."""

    event_type: str = ""
    start_date: str | None = None
    end_date: str | None = None
    page: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    page_size: Annotated[int, Field(ge=1, le=200)] = 50


class EntityQuery(Schema):
    """Which entities to list; without a size, all of them."""

    type: str = ""
    page: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    page_size: Annotated[int | None, Field(ge=1, le=1000)] = None


class ServerAdd(Add):
    """The same at mem0's own server."""


class ServerChange(Change):
    """The same at mem0's own server; an earlier one called the text ``data``."""

    data: str | None = None


class ServerSearch(Entities, Search):
    """A search at mem0's own server, by entities or filters."""
