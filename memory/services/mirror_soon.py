"""Has the mirror follow after every commit that changed passages or vectors, while Qdrant is on."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from memory import jobs, qdrant_store, wiring
from memory.clock import now
from memory.models import Job

FOLLOW: Final = "mirror"
BACKFILL: Final = "backfill"
FIRST_PAUSE_S: Final = 5
LONGEST_PAUSE_S: Final = 60


def mirror_soon() -> None:
    """Have the background job bring to Qdrant what changed, once the transaction commits."""
    if qdrant_store.is_on(wiring.settings()) and not is_pausing():
        order(FOLLOW)


def order(kind: str, *, requested_by: str = jobs.UNASKED) -> Job:
    """Start a job of a kind, or answer the one that is active."""
    return jobs.enqueue(jobs.Order(kind, dedupe_key=kind, requested_by=requested_by))


def is_pausing() -> bool:
    """Whether the last attempts failed and it is too early for another: up to a minute."""
    last = Job.objects.filter(kind__in=(FOLLOW, BACKFILL)).order_by("-created_at")[:5]
    failed = 0
    latest = None
    for job in last:
        if job.state != Job.State.FAILED or job.finished_at is None:
            break
        latest = latest or job.finished_at
        failed += 1
    if latest is None:
        return False
    pause = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** (failed - 1))
    return latest + timedelta(seconds=pause) > now()
