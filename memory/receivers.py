"""Signal receivers: indexes exist after every migrate, and cascades reach them."""

from __future__ import annotations

from typing import Any

from memory import wiring
from memory.models import Passage, PassageChange


def create_indexes(**_kwargs: Any) -> None:
    """Create the derived tables that migrations do not know."""
    wiring.ensure_indexes()


def forget_passage(*, instance: Passage, **_kwargs: Any) -> None:
    """Take a deleted passage out of both indexes, whoever deleted it."""
    wiring.keyword_index().delete([instance.pk])
    PassageChange.objects.create(passage_id=instance.pk)
