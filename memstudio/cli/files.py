"""What needs the database of this machine: imports and jobs that run in this process."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import IO, TYPE_CHECKING, Any, Final

from memstudio.cli.api import REFUSED, Api, Refused, acting_as

if TYPE_CHECKING:
    from memory.errors import ServiceError
    from memory.principal import Principal

MODEL_WAIT_S: Final = 30.0
VECTORS: Final = "manage.py jobs run"
"""What makes the vectors of memories that were imported where no studio runs."""


def import_here(file: IO[bytes], options: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Import a file in this process, with progress; the answer is that of REST."""
    from memory.errors import ServiceError
    from memory.services import exchange
    from memory.services.import_store import ImportOrder
    from memstudio.cli.exchange import progress

    order = ImportOrder(
        owner=options["owner"],
        format=options["format"],
        assistant=options["assistant"],
        dry_run=options["dry_run"],
        name=name,
    )
    try:
        report = exchange.import_file(_principal(options), file, order, progress=progress)
    except ServiceError as error:
        raise _told(error) from None
    told = report.as_json()
    return {**told, "sample": report.sample} if order.dry_run else {**told, "vectors": VECTORS}


def run_jobs(api: Api, _options: Mapping[str, Any]) -> Any:
    """Run what waits in the foreground, where no studio does it."""
    from memory import jobs
    from memory.models import Job
    from memory.tasks import HANDLERS

    if not api.is_local:
        message = "A studio runs here: its workers do it."
        raise Refused(REFUSED, {"code": "studio_runs", "message": message})
    ran: list[str] = []
    waiting = Job.objects.filter(state=Job.State.QUEUED).order_by("created_at")
    # A job that fails waits for its next attempt: each is tried once here.
    while job := waiting.exclude(pk__in=ran).first():
        if sys.stderr.isatty():
            sys.stderr.write(f"{job.kind} …\n")
        jobs.run(job.pk, HANDLERS, role="command")
        ran.append(str(job.pk))
    return {"ran": len(ran)}


def warm_up(api: Api) -> None:
    """Load the model where this process searches itself: a search does not wait for one."""
    if not api.is_local:
        return
    from memory import readiness
    from memory.services.retrieval import serving_now

    source = serving_now().source
    if source is not None:
        readiness.is_ready(source, wait_s=MODEL_WAIT_S)


def _principal(options: Mapping[str, Any]) -> Principal:
    from memory.principal import SYSTEM
    from memory.services import keys

    acting = acting_as(options["acting"])
    if not acting:
        return SYSTEM
    return keys.authenticate(acting) if acting.startswith(keys.PREFIX) else keys.acting(acting)


def _told(error: ServiceError) -> Refused:
    return Refused(REFUSED, {"code": error.code, "message": error.message, "fields": error.fields})
