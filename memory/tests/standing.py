"""Where a memory stands: its passage, and what its owner's scope is."""

from __future__ import annotations

from typing import Any

from engine.types import Scope
from memory.models import Memory, Passage
from memory.principal import Principal
from memory.services import access, lifetimes


def scope_of(principal: Principal, **narrowed: Any) -> Scope:
    """What a caller sees now of its own."""
    owner = access.read_owner(principal, None)
    assert owner is not None
    return lifetimes.scope([owner], view=lifetimes.View(**narrowed))


def passage_of(memory: Memory) -> int:
    """The only passage of a memory."""
    return Passage.objects.get(memory=memory).pk
