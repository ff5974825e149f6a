"""Shapes of ``/api/keys`` and ``/api/jobs``."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from memory.api.schemas.base import NonEmpty, Shape, Strict
from memory.api.schemas.memories import Moment
from memory.services.keys import MAX_NAME

ScopeName = Literal["read", "write", "chat", "manage"]


def _default_scopes() -> list[ScopeName]:
    return ["read", "write", "chat"]


class KeyIn(Strict):
    """POST ``/api/keys``."""

    name: Annotated[NonEmpty, Field(max_length=MAX_NAME)]
    scopes: Annotated[list[ScopeName], Field(default_factory=_default_scopes, min_length=1)]
    expires_at: Moment = None


class KeyOut(Shape):
    """An API key without its secret."""

    id: str
    name: str
    scopes: list[str]
    hint: str
    is_default: bool
    memory_count: int
    created_at: str
    last_used_at: str | None
    expires_at: str | None
    revoked_at: str | None


class KeyCreated(KeyOut):
    """A new key. ``secret`` is never shown again."""

    secret: str


class KeyList(Shape):
    """Every key."""

    data: list[KeyOut]


class JobOut(Shape):
    """One run of long work."""

    id: str
    kind: str
    state: str
    done: int
    total: int
    percent: int
    message: str
    error_code: str
    result: dict[str, Any]
    attempts: int
    created_at: str
    started_at: str | None
    finished_at: str | None


class JobList(Shape):
    """Newest first."""

    data: list[JobOut]
