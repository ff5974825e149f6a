"""Celery entry points. Messages carry only the id of a ``Job`` row."""

from __future__ import annotations

from celery import shared_task
from django.conf import settings

from memory import jobs
from memory.services import compaction, embedding, exchange, housekeeping

HANDLERS = {
    "reindex": embedding.fill,
    "import": exchange.run_import,
    "compact": compaction.run,
}


@shared_task(name=jobs.TASK, acks_late=True)  # type: ignore[untyped-decorator]
def run_job(job_id: str) -> None:
    """Carry out one job, unless another worker has it."""
    role = "studio" if settings.MEMORY_STUDIO_EMBEDDED_WORKER else "worker"
    jobs.run(job_id, HANDLERS, role=role)


@shared_task(name="memory.sweep", ignore_result=True)  # type: ignore[untyped-decorator]
def sweep() -> None:
    """The half-minute round, for installations whose beat calls it."""
    housekeeping.tick()
