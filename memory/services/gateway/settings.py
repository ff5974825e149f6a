"""Reading and changing the settings of chats."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memory import chat_settings, wiring
from memory.chat_settings import CHAT_FIELDS, ChatSettings
from memory.principal import Principal
from memory.services import settings


def get() -> ChatSettings:
    """The settings in force."""
    return chat_settings.normalise(wiring.stored_values())


def as_json(chosen: ChatSettings) -> dict[str, Any]:
    """The settings under their API names."""
    return {entry.api: getattr(chosen, entry.name) for entry in CHAT_FIELDS}


def update(principal: Principal, changes: Mapping[str, Any]) -> ChatSettings:
    """Change settings by API name. Values are validated by the caller's schema."""
    settings.store_fields(principal, changes, CHAT_FIELDS)
    return get()
