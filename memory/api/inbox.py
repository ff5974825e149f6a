"""``/api/inbox``: facts that wait for somebody's decision."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Query, Router

from memory.api.auth import caller
from memory.api.schemas.extraction import (
    AcceptIn,
    DecideIn,
    DecisionsIn,
    DecisionsOut,
    InboxItemOut,
    InboxList,
    InboxQuery,
)
from memory.clock import iso
from memory.models import InboxItem
from memory.services.extraction import inbox
from memory.services.extraction.inbox import Decision, InboxFilter

router = Router(tags=["inbox"], by_alias=True)


@router.get("", response=InboxList)
def list_inbox(request: HttpRequest, filters: Query[InboxQuery]) -> dict[str, Any]:
    """The inbox of an owner, newest first; the studio without ``apiKeyId`` sees every owner's."""
    page = inbox.list_page(
        caller(request),
        InboxFilter(
            owner=filters.api_key_id or None,
            state=filters.state,
            category=filters.category,
            reason=filters.reason,
            limit=filters.limit,
            page=filters.page,
        ),
    )
    return {
        "data": [_out(row) for row in page.rows],
        "counts": page.counts,
        "total": page.total,
        "page": page.page,
        "limit": page.limit,
        "total_pages": page.total_pages,
    }


@router.post("/decisions", response=DecisionsOut)
def decide_many(request: HttpRequest, payload: DecisionsIn) -> dict[str, Any]:
    """Decide about many items at once; one that cannot be decided leaves the others alone."""
    answers = inbox.decide_many(caller(request), payload.ids, Decision(payload.action))
    results = [
        {"id": item_id, "state": answer.state, "error": None}
        if isinstance(answer, InboxItem)
        else {"id": item_id, "state": None, "error": answer.code}
        for item_id, answer in answers
    ]
    return {"results": results, "decided": sum(not result["error"] for result in results)}


@router.get("/{item_id}", response=InboxItemOut)
def read_item(request: HttpRequest, item_id: str) -> dict[str, Any]:
    """One item."""
    return _out(inbox.get(caller(request), item_id))


@router.post("/{item_id}/accept", response=InboxItemOut)
def accept(request: HttpRequest, item_id: str, payload: AcceptIn) -> dict[str, Any]:
    """Store the item as a memory, with another text or type where they are sent."""
    decision = Decision("accept", payload.content, payload.type, payload.revision)
    return _out(inbox.decide(caller(request), item_id, decision))


@router.post("/{item_id}/reject", response=InboxItemOut)
def reject(request: HttpRequest, item_id: str, payload: DecideIn) -> dict[str, Any]:
    """Decide against the item; the same fact does not come back for 90 days."""
    decision = Decision("reject", revision=payload.revision)
    return _out(inbox.decide(caller(request), item_id, decision))


@router.post("/{item_id}/reopen", response=InboxItemOut)
def reopen(request: HttpRequest, item_id: str, payload: DecideIn) -> dict[str, Any]:
    """Take a decision back; a memory that the item became is undone with it."""
    decision = Decision("reopen", revision=payload.revision)
    return _out(inbox.decide(caller(request), item_id, decision))


def _out(row: InboxItem) -> dict[str, Any]:
    return {
        "id": str(row.pk),
        "api_key_id": str(row.owner.uid),
        "api_key_name": row.owner.name,
        "session_id": row.session_id,
        "category": row.category,
        "type": row.type,
        "key": row.key,
        "content": row.content,
        "polarity": row.polarity,
        "speaker": row.speaker,
        "confidence": row.confidence,
        "reason": row.reason,
        "source": row.source,
        "metadata": row.metadata,
        "trace_id": str(row.trace_id) if row.trace_id else None,
        "state": row.state,
        "memory_id": str(row.memory_id) if row.memory_id else None,
        "seen": row.seen,
        "revision": row.revision,
        "created_at": iso(row.created_at),
        "updated_at": iso(row.updated_at),
        "decided_at": iso(row.decided_at) if row.decided_at else None,
        "decided_by": row.decided_by,
    }
