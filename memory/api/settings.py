"""``/api/settings/memory``."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Router

from memory.api.auth import caller
from memory.api.schemas.settings import MemorySettingsIn, MemorySettingsOut
from memory.services import access, settings

router = Router(tags=["settings"], by_alias=True)


@router.get("/memory", response=MemorySettingsOut)
def read_memory_settings(request: HttpRequest) -> dict[str, Any]:
    """The settings in force."""
    access.require(caller(request), "manage")
    return settings.as_json(settings.get())


@router.put("/memory", response=MemorySettingsOut)
def update_memory_settings(request: HttpRequest, payload: MemorySettingsIn) -> dict[str, Any]:
    """Change the settings that are sent."""
    changes = payload.model_dump(exclude_unset=True, by_alias=True)
    return settings.as_json(settings.update(caller(request), changes))
