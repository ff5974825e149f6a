"""mem0's own server, without versions in its paths. Here it stands under ``/mem0``, because
``/memories`` is a page of the studio."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext as _
from ninja import Router

from memory.api.auth import caller
from memory.compat.errors import NotOffered
from memory.compat.mem0 import asked
from memory.compat.mem0.memories import search_request
from memory.compat.mem0.present import added_out, found_out, history_out, memory_out
from memory.compat.mem0.schemas import ServerAdd, ServerChange, ServerSearch
from memory.errors import Invalid
from memory.services import clearing, memories
from memory.services.mem0 import adding, changing, reading
from memory.services.mem0.entities import OfEntities
from memory.services.mem0.reading import MAX_PAGE, PageRequest

router = Router()


@router.post("/memories")
def add(request: HttpRequest, payload: ServerAdd) -> dict[str, Any]:
    """Remember messages."""
    return added_out(adding.add(caller(request), asked.offer(payload)), _("Stored."))


@router.get("/memories")
def list_memories(request: HttpRequest) -> dict[str, Any]:
    """Every memory of the entities that are named, newest first; ``limit`` ends the list."""
    query = request.GET.dict()
    wanted = OfEntities(_some(asked.entities_in(query)))
    most = _limit(query.get("limit") or query.get("top_k"))
    rows: list[dict[str, Any]] = []
    number, total = 1, 1
    while len(rows) < min(most, total):
        asked_page = PageRequest(wanted, page=number, limit=MAX_PAGE)
        page = reading.list_page(caller(request), asked_page)
        if not page.rows:
            break
        rows.extend(memory_out(row) for row in page.rows)
        number, total = number + 1, page.total
    return {"results": rows[:most]}


def _some(found: dict[str, str]) -> dict[str, str]:
    if not found:
        raise Invalid(_("At least one of user_id, agent_id, app_id and run_id is needed."))
    return found


def _limit(text: str | None) -> int:
    if text is None:
        return 10_000
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= 10_000:
        message = _("A number from 1 to %(most)s.") % {"most": 10_000}
        raise Invalid(message, fields={"limit": message})
    return int(text[:9])


@router.delete("/memories")
def delete_all(request: HttpRequest) -> dict[str, Any]:
    """Put every memory of the entities that are named in the trash."""
    count = changing.delete_all(caller(request), asked.entities_in(request.GET.dict()))
    return {"message": _("Moved to the trash: %(count)s.") % {"count": count}}


@router.get("/memories/{memory_id}")
def read(request: HttpRequest, memory_id: str) -> dict[str, Any]:
    """One memory."""
    return memory_out(reading.get(caller(request), memory_id))


@router.put("/memories/{memory_id}")
def update(request: HttpRequest, memory_id: str, payload: ServerChange) -> dict[str, Any]:
    """Change what is sent."""
    if payload.text is None and payload.data is not None:
        payload.text = payload.data
    changing.update(caller(request), memory_id, asked.changes(payload))
    return {"message": _("Changed.")}


@router.delete("/memories/{memory_id}")
def delete(request: HttpRequest, memory_id: str) -> dict[str, Any]:
    """Put one memory in the trash."""
    memories.delete(caller(request), memory_id)
    return {"message": _("Moved to the trash.")}


@router.get("/memories/{memory_id}/history")
def history(request: HttpRequest, memory_id: str) -> list[dict[str, Any]]:
    """What a memory was, oldest first."""
    principal = caller(request)
    memory = memories.get(principal, memory_id, trashed=True)
    return history_out(memory, memories.history(principal, memory_id))


@router.post("/search")
def search(request: HttpRequest, payload: ServerSearch) -> dict[str, Any]:
    """Find memories of the entities that are named, or within a filter."""
    given = {**(payload.filters or {}), **asked.named(payload)}
    found = reading.search(caller(request), search_request(payload, given))
    return {"results": [found_out(item, payload.fields or ()) for item in found]}


@router.post("/reset")
def reset(request: HttpRequest) -> dict[str, Any]:
    """Put every memory of the key in the trash."""
    count = clearing.clear(caller(request), clearing.Wanted())
    return {"message": _("Moved to the trash: %(count)s.") % {"count": count}}


@router.post("/configure")
def configure(request: HttpRequest) -> None:
    """The engine is set up in the studio. Raises ``NotOffered``."""
    raise NotOffered(_("The engine is set up in the studio."))
