"""What follows when an open vault comes into the vector space of memories, or leaves it."""

from __future__ import annotations

from collections.abc import Iterable

from memory import wiring
from memory.models import Passage, Vault, VectorIndex
from memory.services import embedding, indexes, passages
from memory.services.vaults import spaces


def follow(vault: int) -> None:
    """Bring marks and vectors of a vault in line with its rules, in the transaction of the change.

    Where an index no longer embeds the vault its vectors go, at once and out of a retired index
    too; where it does from now on, what it lacks is marked. Every entry of the change log is
    written again: a mirror on another machine lets go of a vault that has become device-only.
    """
    _follow([vault])


def follow_all() -> None:
    """The same for every open vault, when a service is chosen for vaults or none any more."""
    _follow(Vault.objects.filter(is_sealed=False).order_by("pk").values_list("pk", flat=True))


def _follow(vaults: Iterable[int]) -> None:
    wiring.lock_indexes(alone=True)
    listed = [vault for vault in vaults if Passage.objects.filter(vault_id=vault).exists()]
    if not listed:
        return
    for index in VectorIndex.objects.all():
        leaving = spaces.apart(index).intersection(listed)
        if leaving:
            spaces.withdraw(index, leaving)
        if index.state != VectorIndex.State.RETIRED:
            for vault in listed:
                if vault not in leaving:
                    indexes.mark_lost(index, vault)
    passages.log(Passage.objects.filter(vault_id__in=listed).values_list("pk", flat=True))
    embedding.embed_soon()
