"""Celery entry points. Messages carry only the id of a ``Job`` row."""

from __future__ import annotations

from celery import shared_task
from celery.exceptions import Reject
from django.conf import settings

from memory import jobs
from memory.services import compaction, embedding, exchange, housekeeping, mirroring
from memory.services.backends import following, transfers
from memory.services.extraction import turns
from memory.services.webhooks import delivering

HANDLERS = {
    "reindex": embedding.fill,
    "import": exchange.run_import,
    "import-check": exchange.run_check,
    "compact": compaction.run,
    "mirror": mirroring.follow,
    "backfill": mirroring.backfill,
    "backend-follow": following.run,
    "backend-copy": transfers.copy,
    "backend-pull": transfers.pull,
    "webhook": delivering.run,
    turns.KIND: turns.run,
}


@shared_task(name=jobs.TASK)  # type: ignore[untyped-decorator]
def run_job(job_id: str) -> None:
    """Carry out one job, unless another worker has it."""
    role = "studio" if settings.MEMORY_STUDIO_EMBEDDED_WORKER else "worker"
    if not jobs.run(job_id, HANDLERS, role=role) and jobs.is_stopping():
        # The message goes back where it came from, for a worker that stays.
        raise Reject("this worker ends", requeue=True)


@shared_task(name="memory.start")  # type: ignore[untyped-decorator]
def start() -> None:
    """What a worker sees to when it has begun."""
    housekeeping.start()


@shared_task(name="memory.sweep")  # type: ignore[untyped-decorator]
def sweep() -> None:
    """The half-minute round, for installations whose beat calls it."""
    housekeeping.sweep()


@shared_task(name="memory.cleanup")  # type: ignore[untyped-decorator]
def cleanup() -> None:
    """The slow round, for installations whose beat calls it."""
    housekeeping.cleanup()
