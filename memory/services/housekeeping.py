"""What happens by itself: lapsed jobs, waiting vectors, old trash, old logs, loading the model."""

from __future__ import annotations

import contextlib
import logging
from datetime import timedelta
from typing import Final

from django.db import transaction

from engine.errors import EngineError
from memory import jobs, vault_wiring, wiring
from memory.clock import now
from memory.errors import Conflict
from memory.models import ApiKey, Job, Memory, Passage, VaultAsset
from memory.principal import SYSTEM
from memory.services import (
    audit,
    compaction,
    embedding,
    indexes,
    mirroring,
    passages,
    reindex,
    uploads,
)
from memory.services.backends import following, transfers
from memory.services.extraction import inbox
from memory.services.gateway import traces
from memory.services.vaults import chunking
from memory.services.webhooks import delivering

logger = logging.getLogger("memory.housekeeping")

TRASH_LIFE: Final = timedelta(days=30)
PURGE_BATCH: Final = 200
SUMMARIZE_EVERY: Final = timedelta(days=1)


def start() -> int:
    """Once, when jobs begin to be run here: free what the dead held, renew, ``tick``."""
    jobs.void_own_leases(alone=wiring.is_alone())
    try:
        reindex.renew_keywords()
    except EngineError as error:
        # The engine page says that the tier is off; everything else still works.
        logger.warning("the keyword index cannot be renewed: %s", error)
    embedding.reconcile()
    count = tick()
    warm_up()
    return count


def warm_up() -> None:
    """Once, when a process begins: remove files of what is no more, load what searches need."""
    wiring.remove_orphaned_files()
    mirroring.warm_up()
    _load_model()


def tick() -> int:
    """Both rounds, for a studio that runs its jobs itself."""
    count = sweep()
    cleanup()
    return count


def sweep() -> int:
    """Every half minute: send lapsed jobs again, and see to vectors that wait."""
    count = jobs.sweep()
    vault_wiring.keeper().sweep()
    embedding.resume()
    mirroring.tend()
    following.resume()
    transfers.resume()
    delivering.resume()
    return count


def cleanup() -> None:
    """Now and then: forget what is old, and see to what nobody asked for by name."""
    indexes.drop_surplus()
    purge_trash()
    _summarize_on_schedule()
    embedding.prune_changes()
    jobs.prune()
    delivering.prune()
    inbox.prune()
    uploads.forget_old()
    traces.prune()


def purge_trash() -> int:
    """Erase what has been in the trash for 30 days, a batch at a time; how many."""
    old = Memory.objects.filter(trashed_at__lt=now() - TRASH_LIFE)[:PURGE_BATCH]
    gone = list(old.select_related("api_key"))
    if gone:
        with transaction.atomic():
            passages.remove(gone)
            audit.record(SYSTEM, "memory.purge", ids=[row.pk for row in gone])
            Memory.objects.filter(pk__in=[row.pk for row in gone]).delete()
    assets = VaultAsset.objects.filter(trashed_at__lt=now() - TRASH_LIFE)
    if assets.exists():
        with transaction.atomic():
            assets.delete()
            chunking.erase_files()
    return len(gone)


def _summarize_on_schedule() -> None:
    """Once a day compact by age what is out of retention, when the settings ask for it."""
    chosen = wiring.settings()
    if not chosen.auto_summarize or not ApiKey.objects.exists():
        return
    scheduled = Job.objects.filter(kind="compact", requested_by=SYSTEM.label)
    if scheduled.filter(created_at__gt=now() - SUMMARIZE_EVERY).exists():
        return
    request = compaction.CompactRequest(all_owners=True, older_than_days=chosen.retention_days)
    if any(plan.candidates for plan in compaction.preview(SYSTEM, request)):
        with contextlib.suppress(Conflict):  # one that was asked for by hand still waits
            compaction.start(SYSTEM, request)


def _load_model() -> None:
    """Load the model in the background when there is something to search with it."""
    source = wiring.resolve_source().source
    if source is None or not Passage.objects.exists():
        return
    try:
        source.health()
    except EngineError:
        # The engine page tells why; the first search tries again.
        return
