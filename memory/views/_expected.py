"""The Playground's question: a memory was expected, why is it not here?"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from memory.errors import Invalid, NotFound
from memory.models import Memory
from memory.principal import Principal
from memory.services import listing, memories, why_not_text
from memory.services.listing import MemoryFilter, MemoryRow
from memory.services.retrieval import RetrieveRequest
from memory.services.why_not import WhyNot, why_not
from memory.services.why_not_lists import ListPlace
from memory.views import _lens
from memory.views._trace import STAGES

LOOKED_AT: Final = 50
CHOICES: Final = 8


@dataclass(frozen=True, slots=True)
class Place:
    """What one list did with the memory, in the words of the page."""

    label: str
    place: ListPlace
    text: str


@dataclass(frozen=True, slots=True)
class Expected:
    """The memory that was named: itself, or several it could be; ``told`` once a query ran."""

    memory: Memory | None = None
    choices: Sequence[MemoryRow] = ()
    told: WhyNot | None = None
    sentence: str = ""
    stage: str = ""
    hints: Sequence[tuple[str, str]] = ()
    places: Sequence[Place] = ()
    cut: _lens.Cut | None = None


def find(principal: Principal, text: str, owner: str) -> Expected | None:
    """The memory with this id, key or text; None when nothing was named."""
    text = text.strip()
    if not text:
        return None
    try:
        return Expected(memories.get(principal, str(uuid.UUID(text)), trashed=True))
    except ValueError:
        return _search(principal, text, owner)
    except NotFound:
        return Expected()


def _search(principal: Principal, text: str, owner: str) -> Expected:
    wanted = MemoryFilter(owner=owner or None, q=text, state="all", limit=LOOKED_AT)
    try:
        rows = listing.list_page(principal, wanted).rows
    except Invalid:
        return Expected()
    exact = [row for row in rows if row.memory.key == text]
    found = exact if len(exact) == 1 else rows
    if len(found) == 1:
        return Expected(found[0].memory)
    return Expected(choices=found[:CHOICES])


def explain(principal: Principal, request: RetrieveRequest, memory: Memory) -> Expected:
    """Run the retrieval and say what became of the memory in it."""
    told = why_not(principal, request, str(memory.pk))
    return Expected(
        memory=told.memory,
        told=told,
        sentence=why_not_text.sentence(told),
        stage=str(STAGES.get(told.stage, told.stage)),
        hints=why_not_text.hints(told),
        places=[
            Place(str(STAGES.get(p.name, p.name)), p, why_not_text.place_text(p))
            for p in told.lists
        ],
        cut=_lens.of_memory(principal, told.memory, told.terms),
    )
