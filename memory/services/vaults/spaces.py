"""Which open vaults are embedded by the studio's own source, into the store of memories.

An open vault shares that vector space unless it names a model or a length of its own, or an
embedding service is chosen for vaults; one that is device-only shares it only while a model
of this machine makes it. What does not share it is searched by meaning in memory, like a sealed
vault, and no background job ever embeds it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from django.db.models import Q, QuerySet

from engine.vault.errors import ConfigInvalid
from memory import vault_wiring, wiring
from memory.model_facts import LOCAL_FAMILIES
from memory.models import Passage, Vault, VectorIndex

PAGE: Final = 1_000
OWN: Final = ~Q(embedding_model="") | Q(embedding_dim__isnull=False)


def apart(index: VectorIndex | None) -> frozenset[int]:
    """The open vaults that an index does not embed; None is the one that is still to be made."""
    vaults = Vault.objects.filter(is_sealed=False).order_by()
    if not _has_own_service():
        vaults = vaults.filter(OWN if is_local(index) else OWN | Q(is_device_only=True))
    return frozenset(vaults.values_list("pk", flat=True))


def shares(vault: Vault, index: VectorIndex | None) -> bool:
    """Whether an index embeds a vault: what ``apart`` says, of one that was read already."""
    if vault.is_sealed or vault.embedding_model or vault.embedding_dim is not None:
        return False
    if vault.is_device_only and not is_local(index):
        return False
    return not _has_own_service()


def is_local(index: VectorIndex | None) -> bool:
    """Whether a model of this machine makes the vectors of an index, or of the first one."""
    family = wiring.resolve_source().family if index is None else index.source
    return family in LOCAL_FAMILIES


def embedded_by(index: VectorIndex | None) -> QuerySet[Passage]:
    """The passages that have, or wait for, a vector of an index."""
    rows = Passage.objects.all()
    others = apart(index)
    return rows.exclude(vault_id__in=others) if others else rows


def count(index: VectorIndex | None, owner: int | None = None) -> int:
    """How many passages those are; with ``owner``, of one API key alone.

    Those of other spaces are few and have an index of their own, so they are subtracted.
    """
    rows = Passage.objects.all() if owner is None else Passage.objects.filter(owner=owner)
    others = apart(index)
    return rows.count() - (rows.filter(vault_id__in=others).count() if others else 0)


def marked(index: VectorIndex, rows: Sequence[Passage]) -> list[int]:
    """Of passages that changed, those that an index is to embed."""
    if all(row.vault_id is None for row in rows):
        return [row.pk for row in rows]
    others = apart(index)
    return [row.pk for row in rows if row.vault_id not in others]


def withdraw(index: VectorIndex, vaults: frozenset[int]) -> int:
    """Take the vectors and marks of vaults that an index does not embed out of it; how many."""
    gone = 0
    rows = Passage.objects.filter(vault_id__in=vaults).order_by("pk")
    marks = index.marks.filter(passage__in=rows.order_by())
    marks._raw_delete(marks.db)
    store, after = wiring.store_for(index), 0
    store.ensure()
    while ids := list(rows.filter(pk__gt=after).values_list("pk", flat=True)[:PAGE]):
        held = list(store.hashes(ids))
        store.delete(held)
        gone, after = gone + len(held), ids[-1]
    return gone


def _has_own_service() -> bool:
    """Whether a service embeds for vaults; a configuration that cannot be read might name one."""
    try:
        return vault_wiring.has_embedding_service()
    except ConfigInvalid:
        return True
