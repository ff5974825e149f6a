"""mem0's platform: users, agents, apps and runs, and events."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext as _
from ninja import Query, Router

from memory.api.auth import caller
from memory.compat.errors import NotOffered
from memory.compat.mem0 import asked
from memory.compat.mem0.present import entity_out, event_out, page_out
from memory.compat.mem0.schemas import EntityQuery, EventQuery
from memory.services.mem0 import entities, events

router = Router()


@router.get("/v1/entities/")
def list_entities(request: HttpRequest, query: Query[EntityQuery]) -> dict[str, Any]:
    """Every entity with live memories; in pages only when a size is asked for."""
    principal = caller(request)
    found = entities.list_entities(principal, query.type)
    size = query.page_size or max(len(found), 1)
    first = (query.page - 1) * size
    results = [entity_out(item, principal.name) for item in found[first : first + size]]
    totals = {f"total_{kind}s": sum(item.kind == kind for item in found) for kind in entities.KINDS}
    return {
        **page_out(request, results, total=len(found), page=query.page, size=size),
        **totals,
    }


@router.get("/v2/entities/user/{name}/profile/")
def profile(request: HttpRequest, name: str) -> dict[str, Any]:
    """No profile, in the words that the protocol has for it."""
    entity = entities.find(caller(request), "user", name)
    return {
        "profile": {},
        "status": "not_enabled",
        "entity_type": "user",
        "entity_id": entity.name,
        "updated_at": None,
        "generation_count": 0,
    }


@router.get("/v2/profiles/settings/")
def profile_settings(request: HttpRequest) -> dict[str, Any]:
    """That there are no profiles."""
    empty = {"schema": None, "custom_instructions": None}
    return {"enabled": False, "capabilities": {}, "entities": {"user": empty}}


@router.post("/v2/profiles/settings/")
@router.post("/v2/profiles/jobs/")
def no_profiles(request: HttpRequest) -> None:
    """Profiles cannot be made. Raises ``NotOffered``."""
    raise NotOffered(_("Profiles need a language model; this server makes none."))


@router.get("/v1/entities/{entity_type}/{path:name}/")
@router.get("/v2/entities/{entity_type}/{path:name}/")
def read_entity(request: HttpRequest, entity_type: str, name: str) -> dict[str, Any]:
    """One entity."""
    principal = caller(request)
    return entity_out(entities.find(principal, entity_type, name), principal.name)


@router.delete("/v1/entities/{entity_type}/{path:name}/")
@router.delete("/v2/entities/{entity_type}/{path:name}/")
def delete_entity(request: HttpRequest, entity_type: str, name: str) -> dict[str, Any]:
    """Put every memory of an entity in the trash; with them it is gone."""
    count = entities.remove(caller(request), entity_type, name)
    return {"message": _("Moved to the trash: %(count)s.") % {"count": count}}


@router.get("/v1/events/")
def list_events(request: HttpRequest, query: Query[EventQuery]) -> dict[str, Any]:
    """What was done with the caller's memories, newest first."""
    page = events.list_page(
        caller(request),
        kind=query.event_type.upper(),
        since=asked.moment("start_date", query.start_date),
        until=asked.moment("end_date", query.end_date, is_end=True),
        limit=query.page_size,
        page=query.page,
    )
    results = [event_out(event) for event in page.events]
    return page_out(request, results, total=page.total, page=query.page, size=query.page_size)


@router.get("/v1/event/{event_id}/")
def read_event(request: HttpRequest, event_id: str) -> dict[str, Any]:
    """One event, with those of its memories that are still there."""
    return event_out(events.get(caller(request), event_id))
