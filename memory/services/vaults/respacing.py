"""What follows when an open vault comes into the vector space of memories, or leaves it."""

from __future__ import annotations

from memory import wiring
from memory.models import Passage, VectorIndex
from memory.services import embedding, indexes, passages
from memory.services.vaults import spaces


def follow(vault: int) -> None:
    """Bring marks and vectors of a vault in line with its rules, in the transaction of the change.

    Where an index no longer embeds the vault its vectors go, at once and out of a retired index
    too; where it does from now on, what it lacks is marked. Every entry of the change log is
    written again: a mirror on another machine lets go of a vault that has become device-only.
    """
    wiring.lock_indexes(alone=True)
    for index in VectorIndex.objects.all():
        if vault in spaces.apart(index):
            spaces.withdraw(index, frozenset({vault}))
        elif index.state != VectorIndex.State.RETIRED:
            indexes.mark_lost(index, vault)
    passages.log(Passage.objects.filter(vault_id=vault).values_list("pk", flat=True))
    embedding.embed_soon()
