"""mem0's platform: adding, searching, listing, changing and forgetting memories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext as _
from ninja import Query, Router

from memory.api.auth import caller
from memory.compat.errors import told
from memory.compat.mem0 import asked
from memory.compat.mem0.present import added_out, found_out, history_out, memory_out, page_out
from memory.compat.mem0.schemas import (
    Add,
    Change,
    ChangeMany,
    DeleteMany,
    Feedback,
    List,
    Paging,
    Search,
)
from memory.errors import Invalid
from memory.services import memories
from memory.services.batches import Outcome
from memory.services.mem0 import adding, changing, reading
from memory.services.mem0.reading import PageRequest, SearchRequest

router = Router()


@router.post("/v3/memories/add/")
@router.post("/v1/memories/")
def add(request: HttpRequest, payload: Add) -> dict[str, Any]:
    """Remember messages, at once: the event that is named is done."""
    added = adding.add(caller(request), asked.offer(payload))
    return added_out(added, _("Stored."))


@router.post("/v3/memories/search/")
@router.post("/v2/memories/search/")
def search(request: HttpRequest, payload: Search) -> dict[str, Any]:
    """Find memories within a filter."""
    found = reading.search(caller(request), search_request(payload, payload.filters))
    return {"results": [found_out(item, payload.fields or ()) for item in found]}


def search_request(payload: Search, given: Mapping[str, Any] | None) -> SearchRequest:
    """A search as the services are asked it."""
    return SearchRequest(
        query=payload.query,
        picked=asked.picked(payload, given),
        limit=payload.top_k or payload.limit or 10,
        threshold=payload.threshold or 0.0,
        with_expired=payload.show_expired is True,
    )


@router.post("/v3/memories/")
@router.post("/v2/memories/")
def list_memories(request: HttpRequest, payload: List, paging: Query[Paging]) -> dict[str, Any]:
    """A page of the memories within a filter, newest first."""
    wanted = PageRequest(
        picked=asked.picked(payload, payload.filters),
        since=asked.moment("start_date", payload.start_date),
        until=asked.moment("end_date", payload.end_date, is_end=True),
        with_expired=payload.show_expired is True,
        page=paging.page,
        limit=paging.page_size,
    )
    page = reading.list_page(caller(request), wanted)
    results = [memory_out(row, payload.fields or ()) for row in page.rows]
    return page_out(request, results, total=page.total, page=paging.page, size=paging.page_size)


@router.get("/v1/memories/{memory_id}/")
def read(request: HttpRequest, memory_id: str) -> dict[str, Any]:
    """One memory."""
    return memory_out(reading.get(caller(request), memory_id))


@router.put("/v1/memories/{memory_id}/")
def update(request: HttpRequest, memory_id: str, payload: Change) -> dict[str, Any]:
    """Change what is sent."""
    memory = changing.update(caller(request), memory_id, asked.changes(payload))
    return {**memory_out(memory), "message": _("Changed.")}


@router.delete("/v1/memories/{memory_id}/")
def delete(request: HttpRequest, memory_id: str) -> dict[str, Any]:
    """Put one memory in the trash."""
    memories.delete(caller(request), memory_id)
    return {"message": _("Moved to the trash.")}


@router.delete("/v1/memories/")
def delete_all(request: HttpRequest) -> dict[str, Any]:
    """Put every memory of the entities that are named in the trash."""
    wanted = asked.entities_in(request.GET.dict())
    count = changing.delete_all(caller(request), wanted)
    return {"message": _("Moved to the trash: %(count)s.") % {"count": count}, "event_id": None}


@router.get("/v1/memories/{memory_id}/history/")
def history(request: HttpRequest, memory_id: str) -> list[dict[str, Any]]:
    """What a memory was, oldest first; also of one in the trash."""
    principal = caller(request)
    memory = memories.get(principal, memory_id, trashed=True)
    return history_out(memory, memories.history(principal, memory_id))


@router.put("/v1/batch/")
def update_many(request: HttpRequest, payload: ChangeMany) -> dict[str, Any]:
    """Change up to 1,000 memories."""
    items = [(item.memory_id, asked.changes(item)) for item in payload.memories]
    outcomes = changing.change_many(caller(request), items)
    ids = [memory_id for memory_id, _changes in items]
    return {"message": _("Changed: %(count)s.") % {"count": _whole(ids, outcomes)}}


@router.delete("/v1/batch/")
def delete_many(request: HttpRequest, payload: DeleteMany) -> dict[str, Any]:
    """Put up to 1,000 memories in the trash."""
    ids = [item if isinstance(item, str) else item.memory_id for item in payload.memories]
    count = _whole(ids, changing.delete_many(caller(request), ids))
    return {"message": _("Moved to the trash: %(count)s.") % {"count": count}}


def _whole(ids: Sequence[str], outcomes: Sequence[Outcome]) -> int:
    """How many items were carried out. Raises ``Invalid`` when one was not."""
    failed = [
        f"{memory_id}: {told(outcome.error)}"
        for memory_id, outcome in zip(ids, outcomes, strict=True)
        if outcome.error is not None
    ]
    if failed:
        counts = {"count": len(outcomes) - len(failed), "all": len(outcomes)}
        message = _("%(count)s of %(all)s were carried out.") % counts
        raise Invalid(f"{message} {'; '.join(failed[:20])}")
    return len(outcomes)


@router.post("/v1/feedback/")
def feedback(request: HttpRequest, payload: Feedback) -> dict[str, Any]:
    """Keep what a client thinks of a memory, with the memory."""
    value = payload.feedback.upper() if payload.feedback else None
    changing.feedback(caller(request), payload.memory_id, value, payload.feedback_reason)
    return {
        "id": payload.memory_id,
        "feedback": value,
        "feedback_reason": payload.feedback_reason,
        "message": _("Stored."),
    }
