"""``/api/memory``: list, create, read, change, delete, history."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Query, Router

from memory.api.auth import caller
from memory.api.present import memory_out, revision_out, stats_out
from memory.api.requests import changes_of, draft_of
from memory.api.schemas.base import Success
from memory.api.schemas.memories import (
    HistoryOut,
    MemoryBody,
    MemoryCreate,
    MemoryCreated,
    MemoryList,
    MemoryQuery,
    MemoryUpdate,
    RestoreIn,
)
from memory.services import listing, memories, metadata_filters

router = Router(tags=["memory"], by_alias=True)


@router.get("", response=MemoryList)
def list_memories(request: HttpRequest, filters: Query[MemoryQuery]) -> dict[str, Any]:
    """Memories, newest first, with the figures of their owner. ``offset`` wins over ``page``."""
    principal = caller(request)
    wanted = listing.MemoryFilter(
        owner=filters.api_key_id or None,
        type=filters.type,
        session=filters.session_id or None,
        q=filters.q,
        state=filters.state,
        limit=filters.limit,
        page=filters.page,
        offset=filters.offset,
        metadata=metadata_filters.parse(filters.filters),
    )
    page = listing.list_page(principal, wanted)
    return {
        "data": [memory_out(row.memory) for row in page.rows],
        "total": page.total,
        "page": page.page,
        "limit": page.limit,
        "total_pages": page.total_pages,
        "stats": stats_out(listing.stats(principal, filters.api_key_id or None)),
    }


@router.post("", response=MemoryCreated)
def create_memory(request: HttpRequest, payload: MemoryCreate) -> dict[str, Any]:
    """Store a memory; a live one with the same key is updated and its metadata merged."""
    memory, created = memories.create(
        caller(request), draft_of(payload), owner=payload.api_key_id or None
    )
    return {**memory_out(memory), "success": True, "created": created}


@router.get("/{memory_id}", response=MemoryBody)
def read_memory(request: HttpRequest, memory_id: str) -> dict[str, Any]:
    """One memory."""
    return {"memory": memory_out(memories.get(caller(request), memory_id))}


@router.put("/{memory_id}", response=Success)
def update_memory(request: HttpRequest, memory_id: str, payload: MemoryUpdate) -> dict[str, Any]:
    """Change the fields that are sent; ``null`` clears the times and leaves the rest alone."""
    memories.update(
        caller(request), memory_id, changes_of(payload), expected_revision=payload.revision
    )
    return {"success": True}


@router.delete("/{memory_id}", response=Success)
def delete_memory(request: HttpRequest, memory_id: str, purge: bool = False) -> dict[str, Any]:
    """Put a memory in the trash, out of every index at once; ``purge`` erases it for good."""
    memories.delete(caller(request), memory_id, purge=purge)
    return {"success": True}


@router.post("/{memory_id}/restore", response=MemoryBody)
def restore_memory(
    request: HttpRequest, memory_id: str, payload: RestoreIn | None = None
) -> dict[str, Any]:
    """Bring a memory back from the trash or the archive; with ``revision``, make a live one what
    it was then, which is a change like any other."""
    principal = caller(request)
    if payload is None or payload.revision is None:
        return {"memory": memory_out(memories.restore(principal, memory_id))}
    return {"memory": memory_out(memories.revert(principal, memory_id, payload.revision))}


@router.get("/{memory_id}/history", response=HistoryOut)
def memory_history(request: HttpRequest, memory_id: str) -> dict[str, Any]:
    """What a memory was before each change."""
    earlier = memories.history(caller(request), memory_id)
    return {"data": [revision_out(row) for row in earlier]}
