"""The cards of the engine's tiers: a title, what it is for, and its one action."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

from memory.services.status import EngineStatus
from memory.services.status_types import TierState


@dataclass(frozen=True, slots=True)
class Action:
    """The one action of a card: a link to a form on the page, or starting a reindex."""

    label: Promise
    href: str = ""
    force: bool = False


@dataclass(frozen=True, slots=True)
class Card:
    """One tier as the page shows it."""

    tier: TierState
    title: Promise
    purpose: Promise
    action: Action


TITLES: Final[Mapping[str, tuple[Promise, Promise]]] = {
    "keyword": (gettext_lazy("Keyword"), gettext_lazy("Finds words. Always there.")),
    "embedding": (gettext_lazy("Embedding"), gettext_lazy("Turns text into vectors.")),
    "vectorStore": (gettext_lazy("Vector store"), gettext_lazy("Finds what means the same.")),
    "qdrant": (gettext_lazy("Qdrant"), gettext_lazy("For very large collections.")),
    "fusion": (gettext_lazy("Fusion"), gettext_lazy("Makes one order of both lists.")),
    "rerank": (gettext_lazy("Rerank"), gettext_lazy("Puts the best hits in order again.")),
}


def tier_cards(state: EngineStatus) -> list[Card]:
    """A card for each tier, in the order the page shows them."""
    actions = {
        "keyword": Action(gettext_lazy("Rebuild everything"), force=True),
        "embedding": Action(gettext_lazy("Choose source"), href="#set-embedding_source"),
        "vectorStore": (
            Action(gettext_lazy("Index what waits"))
            if state.coverage.pending
            else Action(gettext_lazy("Choose store"), href="#set-vector_store")
        ),
        "qdrant": Action(gettext_lazy("Configure"), href="#set-qdrant_enabled"),
        "fusion": Action(gettext_lazy("Configure"), href="#set-fusion"),
        "rerank": Action(gettext_lazy("Configure"), href="#set-rerank"),
    }
    return [Card(tier, *TITLES[tier.name], actions[tier.name]) for tier in state.tiers]
