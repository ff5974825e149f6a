"""Shapes of ``/api/memory/batch``."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from memory.api.schemas.base import ErrorDetail, NonEmpty, Shape, Strict
from memory.api.schemas.memories import MemoryCreate, MemoryUpdate


class CreateItem(Strict):
    """One memory to store, as POST ``/api/memory`` takes it."""

    op: Literal["create"]
    memory: MemoryCreate


class UpdateItem(Strict):
    """One memory to change, as PUT ``/api/memory/{id}`` takes it."""

    op: Literal["update"]
    id: NonEmpty
    changes: MemoryUpdate


class DeleteItem(Strict):
    """One memory to put in the trash; ``purge`` erases it."""

    op: Literal["delete"]
    id: NonEmpty
    purge: bool = False


class BatchIn(Strict):
    """POST ``/api/memory/batch``: from 1 to 1,000 items.

    Each is ``{"op": "create", "memory": {…}}``, ``{"op": "update", "id": …, "changes": {…}}`` or
    ``{"op": "delete", "id": …, "purge": false}``. They are checked one by one.
    """

    items: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=1000)]


class BatchResult(Shape):
    """What became of the item at ``index``: its HTTP status as if it were sent alone.

    ``revision`` is null for what was deleted; ``error`` is null unless ``result`` is ``failed``.
    """

    index: int
    status: int
    result: Literal["created", "updated", "deleted", "purged", "failed"]
    id: str | None
    revision: int | None
    error: ErrorDetail | None


class BatchOut(Shape):
    """Results in the order of the items. ``success`` is whether every item was carried out."""

    success: bool
    succeeded: int
    failed: int
    results: list[BatchResult]
