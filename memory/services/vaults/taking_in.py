"""Taking what open vaults hold already into the tables: after an upgrade, or a restore.

Until a vault is taken in it is searched in memory, as sealed vaults are, and searches say so.
"""

from __future__ import annotations

from typing import Final

from django.db import transaction

from memory import jobs, wiring
from memory.models import Vault
from memory.services.vaults import chunking, spaces

BATCH: Final = 50


def mark_lacking() -> int:
    """Mark the open vaults of which assets have no passages (at a start); how many."""
    lacking = chunking.lacking().values("vault")
    return Vault.objects.filter(pk__in=lacking, needs_index=False).update(needs_index=True)


def keep_here() -> int:
    """Have open vaults of an earlier version keep to a model of this machine; how many.

    They were not embedded by the source of memories then. Where that is a service, it is sent
    nothing of them until somebody takes the model's name away.
    """
    if spaces.is_local(None):
        return 0
    vaults = Vault.objects.filter(is_sealed=False, is_device_only=False, embedding_model="")
    return vaults.update(embedding_model=wiring.settings().local_model)


def is_waiting() -> bool:
    """Whether a vault is still to be taken in."""
    return Vault.objects.filter(needs_index=True).exists()


def take_in(context: jobs.JobContext) -> int:
    """Take in what waits, a few assets in a transaction; how many assets. May be broken off."""
    count = 0
    for vault in Vault.objects.filter(needs_index=True).order_by("pk"):
        while done := _some(vault):
            count += done
            context.progress(count, count + chunking.lacking().count(), message=vault.name)
    return count


def _some(vault: Vault) -> int:
    """Take in a few assets; with the last ones the mark goes."""
    with transaction.atomic():
        # Writers of a vault follow one another: what one of them changes now is not overwritten.
        locked = Vault.objects.select_for_update().filter(pk=vault.pk).first()
        if locked is None:
            return 0
        rows = list(chunking.lacking().filter(vault=vault)[:BATCH])
        chunking.sync(locked, rows)
        if len(rows) < BATCH:
            Vault.objects.filter(pk=vault.pk).update(needs_index=False)
    return len(rows)
