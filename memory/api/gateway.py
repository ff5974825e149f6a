"""``/api/settings/gateway``: the settings of chats."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Router

from memory.api.auth import caller
from memory.api.schemas.gateway import ChatSettingsIn, ChatSettingsOut
from memory.services import access
from memory.services.gateway import settings

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
