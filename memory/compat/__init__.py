"""Routes that speak other systems' protocols, so that their clients work by changing an address."""

from __future__ import annotations

from typing import Final

BESIDE_CHATS: Final = tuple(
    f"/v1/{name}"
    for name in (
        "ping",
        "memories",
        "entities",
        "batch",
        "event",
        "events",
        "feedback",
        "exports",
        "summary",
    )
)
"""Paths of mem0 under ``/v1``, where everything else is a chat's."""
