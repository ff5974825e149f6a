"""``/api/memory/batch``: many changes in one request."""

from __future__ import annotations

from typing import Annotated, Any, Final

from django.http import HttpRequest
from django.utils.translation import gettext as _
from ninja import Router
from pydantic import Field, TypeAdapter, ValidationError

from memory.api.auth import caller
from memory.api.errors import error_out, places
from memory.api.requests import changes_of, draft_of
from memory.api.schemas.batch import BatchIn, BatchOut, CreateItem, DeleteItem, UpdateItem
from memory.errors import Invalid
from memory.services import batches
from memory.services.batches import Change, Create, Item, Outcome, Remove, Unreadable

router = Router(tags=["memory"], by_alias=True)

_ITEM: Final[TypeAdapter[CreateItem | UpdateItem | DeleteItem]] = TypeAdapter(
    Annotated[CreateItem | UpdateItem | DeleteItem, Field(discriminator="op")]
)


@router.post("/batch", response=BatchOut)
def change_many(request: HttpRequest, payload: BatchIn) -> dict[str, Any]:
    """Create, change and delete up to 1,000 memories in order; each item has its own result."""
    outcomes = batches.carry_out(caller(request), [_read(item) for item in payload.items])
    failed = sum(outcome.error is not None for outcome in outcomes)
    return {
        "success": not failed,
        "succeeded": len(outcomes) - failed,
        "failed": failed,
        "results": [_out(request, index, outcome) for index, outcome in enumerate(outcomes)],
    }


def _read(raw: dict[str, Any]) -> Item:
    try:
        item = _ITEM.validate_python(raw)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=False, include_input=False)
        found = places(
            # The first part of a place within an item is its own ``op``.
            {**problem, "loc": problem["loc"][1:] or ("op",)}
            for problem in problems
        )
        return Unreadable(Invalid(_("Some fields are not valid."), fields=found))
    if isinstance(item, CreateItem):
        return Create(draft_of(item.memory), item.memory.api_key_id or None)
    if isinstance(item, UpdateItem):
        return Change(item.id, changes_of(item.changes), item.changes.revision)
    return Remove(item.id, item.purge)


def _out(request: HttpRequest, index: int, outcome: Outcome) -> dict[str, Any]:
    error = outcome.error
    return {
        "index": index,
        "status": error.status if error else 200,
        "result": outcome.result,
        "id": outcome.memory_id,
        "revision": outcome.revision,
        "error": error_out(request, error) if error else None,
    }
