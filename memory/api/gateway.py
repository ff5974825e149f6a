"""``/api/gateway``, ``/api/traces`` and ``/api/settings/gateway``: chats and their receipts."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Query, Router

from engine.chat.bodies import Protocol
from memory.api.auth import caller
from memory.api.schemas.gateway import (
    ChatSettingsIn,
    ChatSettingsOut,
    KeyGatewayIn,
    PreviewChatIn,
    PreviewChatOut,
    TraceDetailOut,
    TraceList,
    TraceQuery,
    UsageList,
    UsageOut,
)
from memory.clock import iso
from memory.models import Trace
from memory.services import access
from memory.services.gateway import meter, previewing, receipts, settings, traces
from memory.services.gateway.meter import Spent
from memory.services.gateway.previewing import PreviewAsk
from memory.services.gateway.traces import TraceFilter

router = Router(tags=["gateway"], by_alias=True)
traces_router = Router(tags=["gateway"], by_alias=True)
settings_router = Router(tags=["settings"], by_alias=True)


@settings_router.get("/gateway", response=ChatSettingsOut)
def read_gateway_settings(request: HttpRequest) -> dict[str, Any]:
    """The settings of chats in force."""
    access.require(caller(request), "manage")
    return settings.as_json(settings.get())


@settings_router.put("/gateway", response=ChatSettingsOut)
def update_gateway_settings(request: HttpRequest, payload: ChatSettingsIn) -> dict[str, Any]:
    """Change the settings that are sent."""
    changes = payload.model_dump(exclude_none=True, by_alias=True)
    return settings.as_json(settings.update(caller(request), changes))


@router.post("/preview", response=PreviewChatOut)
def preview_chat(request: HttpRequest, payload: PreviewChatIn) -> dict[str, Any]:
    """The request that the gateway would send for a chat. Nothing is sent or counted."""
    ask = PreviewAsk(
        body=payload.body,
        protocol=Protocol(payload.protocol),
        owner=payload.api_key_id,
        headers={name.lower(): value for name, value in payload.headers.items()},
        is_on=payload.assume_on,
    )
    made = previewing.preview(caller(request), ask)
    plan, injected = made.plan, made.plan.injected
    return {
        "memory": plan.state.value,
        "request": made.request,
        "provider": made.provider or None,
        "apiKeyId": str(made.owner.uid),
        "query": plan.query,
        "text": injected.text if injected else "",
        "place": injected.place if injected else "",
        "tokens": injected.tokens if injected else 0,
        "retrieved": receipts.retrieved(plan),
        "injected": list(injected.ids) if injected else [],
    }


@router.get("/usage", response=UsageList)
def usage(request: HttpRequest) -> dict[str, Any]:
    """What memory cost in chats, by key: today and over 30 days."""
    return {"data": [_usage(one) for one in meter.figures(caller(request))]}


@router.put("/keys/{key_id}", response=UsageOut)
def change_key(request: HttpRequest, key_id: str, payload: KeyGatewayIn) -> dict[str, Any]:
    """Say whether the chats of a key are given memories, and what these may cost in a day."""
    key = meter.change_key(
        caller(request),
        key_id,
        injection=payload.injection,
        daily_tokens=payload.daily_tokens,
    )
    return _usage(meter.of_key(key))


@traces_router.get("", response=TraceList)
def list_traces(request: HttpRequest, filters: Query[TraceQuery]) -> dict[str, Any]:
    """Receipts of chats, newest first: of every key for a manager, its own for a key."""
    page = traces.list_page(
        caller(request),
        TraceFilter(
            owner=filters.api_key_id or None,
            memory=filters.memory or "",
            session=filters.session_id,
            since=filters.since,
            until=filters.until,
            limit=filters.limit,
            page=filters.page,
        ),
    )
    return {
        "data": [_trace(row) for row in page.rows],
        "total": page.total,
        "page": page.page,
        "limit": page.limit,
        "total_pages": page.total_pages,
    }


@traces_router.get("/{trace_id}", response=TraceDetailOut)
def read_trace(request: HttpRequest, trace_id: str) -> dict[str, Any]:
    """The receipt of one chat, by the id in its header ``x-memory-trace-id``."""
    view = traces.get(caller(request), trace_id)
    return {**_trace(view.trace), "text": view.trace.text}


def _usage(spent: Spent) -> dict[str, Any]:
    return {
        "apiKeyId": str(spent.key.uid),
        "apiKeyName": spent.key.name,
        "injection": spent.key.injection,
        "dailyTokens": spent.key.daily_tokens,
        "tokensToday": spent.today,
        "tokensMonth": spent.month,
        "chatsMonth": spent.chats,
        "injectedMonth": spent.injected,
        "failuresMonth": spent.failures,
    }


def _trace(row: Trace) -> dict[str, Any]:
    return {
        "id": str(row.pk),
        "at": iso(row.at),
        "apiKeyId": str(row.owner.uid),
        "apiKeyName": row.owner.name,
        "sessionId": row.session_id,
        "protocol": row.protocol,
        "model": row.model,
        "provider": row.provider,
        "stream": row.is_stream,
        "status": row.status,
        "outcome": row.outcome,
        "memory": row.memory,
        "place": row.place,
        "tokens": row.tokens,
        "retrieved": row.retrieved,
        "injected": row.injected,
        "learnt": row.learnt,
        "degraded": row.degraded,
        "durations": {name: float(took) for name, took in row.durations.items()},
    }
