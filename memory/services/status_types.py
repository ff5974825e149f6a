"""What the state of a tier consists of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["on", "off", "warn", "error"]
Facts = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class TierState:
    """One tier: ``name`` keyword, embedding, vectorStore, fusion, rerank or qdrant."""

    name: str
    state: State
    label: str
    reason: str
    facts: Facts = ()
    code: str = ""
    latency_ms: float | None = None

    @property
    def available(self) -> bool:
        """Whether the tier serves now."""
        return self.state in ("on", "warn")
