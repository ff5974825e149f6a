"""Shapes of ``/api/audit``."""

from __future__ import annotations

from typing import Annotated

from ninja import Schema
from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from memory.api.schemas.base import Shape, Text
from memory.api.schemas.memories import Moment


class AuditQuery(Schema):
    """Query of GET ``/api/audit``: ``since`` is included, ``until`` is not."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)

    action: Annotated[Text, Field(max_length=60)] = ""
    api_key_id: Text = ""
    since: Moment = None
    until: Moment = None
    limit: Annotated[int, Field(ge=1, le=200)] = 50
    page: Annotated[int, Field(ge=1, le=10_000_000)] = 1


class AuditOut(Shape):
    """One act: ids, counts and durations, never text. ``apiKeyId`` is the owner it was about;
    of more than 100 ids, ``count`` tells how many there were."""

    id: int
    at: str
    actor: str
    action: str
    api_key_id: str | None
    api_key_name: str | None
    target_ids: list[str]
    count: int
    duration_ms: float
    detail: dict[str, str | int | bool]


class AuditList(Shape):
    """One page, newest first."""

    data: list[AuditOut]
    total: int
    page: int
    limit: int
    total_pages: int
