"""What clients ask, in the words of the services. The seeds' words are translated here."""

from __future__ import annotations

from typing import Any, Final

from engine.types import Match, MemoryType, Mode
from memory.api.schemas.engine import PreviewIn
from memory.api.schemas.memories import MemoryCreate, MemoryUpdate
from memory.services.drafts import MemoryDraft
from memory.services.retrieval import RetrieveRequest

_FIELDS: Final = {"pinned": "is_pinned", "shared": "is_shared"}
STRATEGIES: Final = {
    "exact": Mode.KEYWORD,
    "semantic": Mode.VECTOR,
    "hybrid": Mode.HYBRID,
    "recent": Mode.RECENT,
}


def retrieve_request(payload: PreviewIn) -> RetrieveRequest:
    """The retrieval that a body asks for."""
    return RetrieveRequest(
        query=payload.query,
        mode=STRATEGIES[payload.strategy],
        limit=payload.limit,
        max_tokens=payload.max_tokens,
        owner=payload.api_key_id or None,
        all_owners=payload.all_owners,
        session=payload.session_id or None,
        reach=payload.scope,
        types=tuple(MemoryType(name) for name in payload.types),
        match=Match(payload.match),
        trace=payload.trace,
        filters=payload.filters,
    )


def draft_of(payload: MemoryCreate) -> MemoryDraft:
    """The memory that a body offers."""
    return MemoryDraft(
        content=payload.content,
        key=payload.key,
        type=payload.type,
        session_id=payload.session_id,
        metadata=payload.metadata,
        expires_at=payload.expires_at,
        occurred_at=payload.occurred_at,
        is_pinned=payload.pinned,
        is_shared=payload.shared,
    )


def changes_of(payload: MemoryUpdate) -> dict[str, Any]:
    """The fields that a body changes, by their model names; ``null`` only clears times."""
    return {
        _FIELDS.get(name, name): value
        for name, value in payload.model_dump(exclude_unset=True).items()
        if name != "revision" and (value is not None or name in ("expires_at", "occurred_at"))
    }
