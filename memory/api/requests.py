"""What clients ask, in the words of the services. The seeds' words are translated here."""

from __future__ import annotations

from typing import Final

from engine.types import Match, MemoryType, Mode
from memory.api.schemas.engine import PreviewIn
from memory.services.retrieval import RetrieveRequest

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
    )
