"""Signal receivers: indexes exist after every migrate, and cascades reach them."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from memory import wiring
from memory.models import Memory, Passage, PassageChange, VectorIndex
from memory.services import mirror_soon
from memory.services.gateway import traces


def create_indexes(**_kwargs: Any) -> None:
    """Create the derived tables that migrations do not know."""
    wiring.ensure_indexes()


def forget_passage(*, instance: Passage, **_kwargs: Any) -> None:
    """Take a deleted passage out of every index, a retired one too, whoever deleted it."""
    wiring.keyword_index().delete([instance.pk])
    for row in VectorIndex.objects.all():
        store = wiring.store_for(row)
        store.ensure()
        store.delete([instance.pk])
    PassageChange.objects.create(passage_id=instance.pk)
    mirror_soon.mirror_soon()


def forget_texts(*, instance: Memory, **_kwargs: Any) -> None:
    """Have no receipt keep the text of a memory that was erased for good."""
    traces.forget_texts([instance.api_key_id])


def forget_files(**_kwargs: Any) -> None:
    """Have no file keep the terms or vectors of a memory that was erased for good."""
    # At once, should the process end before the commit; and after it, should another process
    # have made them again meanwhile.
    wiring.forget_files()
    transaction.on_commit(wiring.forget_files)
