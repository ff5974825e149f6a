"""Memories, events and entities in the shapes of mem0."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Collection, Sequence
from datetime import UTC, timedelta
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest

from memory.clock import iso
from memory.models import Memory, MemoryRevision
from memory.services.mem0.adding import Added
from memory.services.mem0.entities import MEMBER, Entity, entities_of, member
from memory.services.mem0.events import Event
from memory.services.mem0.reading import Found


def memory_out(memory: Memory, fields: Collection[str] = ()) -> dict[str, Any]:
    """A memory; with ``fields`` only those, and always its id."""
    held = member(memory)
    categories = held.get("categories")
    shown = {
        "id": str(memory.pk),
        "memory": memory.content,
        **entities_of(memory),
        "hash": hashlib.md5(memory.content.encode(), usedforsecurity=False).hexdigest(),
        "metadata": {name: item for name, item in memory.metadata.items() if name != MEMBER}
        or None,
        "categories": categories if isinstance(categories, list) else [],
        "immutable": held.get("immutable") is True,
        "expiration_date": _last_day(memory),
        "created_at": iso(memory.created_at),
        "updated_at": iso(memory.updated_at),
    }
    for name in ("role", "feedback", "feedback_reason"):
        if name in held:
            shown[name] = held[name]
    return {name: item for name, item in shown.items() if not fields or name in {"id", *fields}}


def _last_day(memory: Memory) -> str | None:
    """The last day on which a memory is there."""
    if memory.expires_at is None:
        return None
    return (memory.expires_at.astimezone(UTC) - timedelta(microseconds=1)).date().isoformat()


def found_out(found: Found, fields: Collection[str] = ()) -> dict[str, Any]:
    """A memory that a search found; a list that did not find it counts 0."""
    return {
        **memory_out(found.memory, fields),
        "score": round(found.score, 6),
        "score_breakdown": {
            "semantic": found.hit.vector_score or 0.0,
            "bm25": found.hit.keyword_score or 0.0,
            "entity": 0.0,
        },
    }


def added_out(added: Added, message: str) -> dict[str, Any]:
    """What was added; a text that was there already is a ``NOOP``."""
    return {
        "message": " ".join(part for part in (message, added.note) if part),
        "status": "SUCCEEDED",
        "event_id": added.event_id,
        "results": [
            {
                "id": str(item.memory.pk),
                "memory": item.memory.content,
                "data": {"memory": item.memory.content},
                "event": "ADD" if item.created else "NOOP",
            }
            for item in added.stored
        ],
    }


def page_out(
    request: HttpRequest, results: Sequence[Any], *, total: int, page: int, size: int
) -> dict[str, Any]:
    """A page with the addresses of those around it."""
    return {
        "count": total,
        "next": _address(request, page + 1) if page * size < total else None,
        "previous": _address(request, page - 1) if page > 1 else None,
        "results": list(results),
    }


def _address(request: HttpRequest, page: int) -> str:
    query = {**request.GET.dict(), "page": page}
    return request.build_absolute_uri(f"{request.path}?{urlencode(query)}")


def history_out(memory: Memory, revisions: Sequence[MemoryRevision]) -> list[dict[str, Any]]:
    """The changes of a memory, oldest first; ``revisions`` are what it was, newest first."""
    earlier = list(reversed(revisions))
    texts = [row.content for row in earlier] + [memory.content]
    starts = [memory.created_at, *(row.replaced_at for row in earlier)]
    role = member(memory).get("role")
    said = [{"role": role, "content": texts[0]}] if isinstance(role, str) else []
    entries = [
        _change(memory, number, moment, old=texts[number - 1] if number else None, new=text)
        for number, (text, moment) in enumerate(zip(texts, starts, strict=True))
    ]
    entries[0]["input"] = said
    if memory.trashed_at is not None:
        entries.append(_change(memory, len(texts), memory.trashed_at, old=texts[-1], new=None))
    return entries


def _change(
    memory: Memory, number: int, moment: Any, *, old: str | None, new: str | None
) -> dict[str, Any]:
    event = "ADD" if old is None else "UPDATE" if new is not None else "DELETE"
    return {
        "id": str(uuid.uuid5(memory.pk, str(number))),
        "memory_id": str(memory.pk),
        "input": [],
        "old_memory": old,
        "new_memory": new,
        "event": event,
        **entities_of(memory),
        "created_at": iso(memory.created_at),
        "updated_at": iso(moment),
    }


def event_out(event: Event) -> dict[str, Any]:
    """An event. Whatever the audit tells of is done."""
    return {
        "id": event.id,
        "event_id": event.id,
        "event_type": event.kind,
        "status": "SUCCEEDED",
        "created_at": iso(event.at),
        "started_at": iso(event.at),
        "completed_at": iso(event.at),
        "latency": event.duration_ms,
        "results": [
            {
                "id": str(memory.pk),
                "event": event.kind,
                "data": {"memory": memory.content},
                **entities_of(memory),
            }
            for memory in event.memories
        ],
    }


def entity_out(entity: Entity, owner: str) -> dict[str, Any]:
    """An entity; its id is its name, which is all that it has."""
    return {
        "id": entity.name,
        "name": entity.name,
        "type": entity.kind,
        "total_memories": entity.count,
        "created_at": iso(entity.created_at),
        "updated_at": iso(entity.updated_at),
        "owner": owner,
        "metadata": None,
    }
