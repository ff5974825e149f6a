"""Short ways to ask, for tests that care about what comes back."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from engine.types import Mode
from memory.clock import now
from memory.principal import Principal
from memory.services.retrieval import RetrievalView, RetrieveRequest, retrieve


def ask(
    principal: Principal, query: str = "tea", *, mode: Mode = Mode.KEYWORD, **fields: Any
) -> list[str]:
    """Contents of the memories that a preview brings, best first."""
    return contents(retrieve(principal, RetrieveRequest(query, mode=mode, **fields)))


def contents(view: RetrievalView) -> list[str]:
    """Contents of the hits of a retrieval, in order."""
    return [view.memories[hit.passage.parent].content for hit in view.retrieval.hits]


def days_ago(days: float) -> datetime:
    """A moment in the past (in the future when negative)."""
    return now() - timedelta(days=days)
