"""LangGraph's store: items under namespaces."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router

from memory.api.auth import caller
from memory.clock import iso
from memory.compat.langgraph.schemas import Delete, GetQuery, Namespaces, Put, Search
from memory.services.store import items, places
from memory.services.store.items import Item, ItemSearch, Listing

router = Router()


@router.put("/items")
def put_item(request: HttpRequest, payload: Put) -> HttpResponse:
    """Store an item, or replace the one at its place."""
    place = places.place(payload.namespace, payload.key)
    items.put(caller(request), place, payload.value, index=payload.index, ttl=payload.ttl)
    return HttpResponse(status=204)


@router.get("/items")
def get_item(request: HttpRequest, query: Query[GetQuery]) -> dict[str, Any] | None:
    """One item; null when there is none."""
    place = places.place(query.namespace.split("."), query.key)
    item = items.get(caller(request), place, refreshes=query.refresh_ttl is not False)
    return _out(item) if item is not None else None


@router.delete("/items")
def delete_item(request: HttpRequest, payload: Delete) -> HttpResponse:
    """Forget an item, if there is one."""
    items.delete(caller(request), places.place(payload.namespace, payload.key))
    return HttpResponse(status=204)


@router.post("/items/search")
def search_items(request: HttpRequest, payload: Search) -> dict[str, Any]:
    """Items below a namespace: by a query, or newest change first."""
    asked = ItemSearch(
        below=places.checked(payload.namespace_prefix, "namespace_prefix"),
        sent=payload.filter,
        query=payload.query or "",
        limit=payload.limit or 10,
        offset=payload.offset or 0,
        refreshes=payload.refresh_ttl is not False,
    )
    found = items.search(caller(request), asked)
    return {"items": [{**_out(item), "score": item.score} for item in found]}


@router.post("/namespaces")
def list_namespaces(request: HttpRequest, payload: Namespaces) -> dict[str, Any]:
    """The namespaces that hold items."""
    asked = Listing(
        prefix=places.checked(payload.prefix or (), "prefix"),
        suffix=places.checked(payload.suffix or (), "suffix"),
        max_depth=payload.max_depth,
        limit=payload.limit or 100,
        offset=payload.offset or 0,
    )
    return {"namespaces": [list(item) for item in items.namespaces(caller(request), asked)]}


def _out(item: Item) -> dict[str, Any]:
    return {
        "namespace": list(item.place.namespace),
        "key": item.place.key,
        "value": item.value,
        "created_at": iso(item.created_at),
        "updated_at": iso(item.updated_at),
    }
