"""What needs the database of this machine: whole exports and imports, and running jobs here."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from memstudio import env
from memstudio.cli.api import REFUSED, USAGE, Api, Refused, acting_as

if TYPE_CHECKING:
    from memory.errors import ServiceError
    from memory.principal import Principal

MODEL_WAIT_S: Final = 30.0


def write(_api: Api, options: Mapping[str, Any]) -> Any:
    """Export to a file, or to standard output, which then holds the export only."""
    from memory.errors import ServiceError
    from memory.services import exchange

    _refuse_elsewhere(options)
    path: Path | None = options["file"]
    try:
        pieces = exchange.export_all(_principal(options), options["owner"])
        if path is None:
            sys.stdout.writelines(pieces)
            return None
        with path.open("w", encoding="utf-8") as file:
            file.writelines(pieces)
    except ServiceError as error:
        raise _told(error) from None
    except OSError as error:
        raise Refused(REFUSED, _unusable(path, error)) from None
    return {"written": str(path)}


def read(api: Api, options: Mapping[str, Any]) -> Any:
    """Import a file, with progress; an owner that is missing is made."""
    from memory.errors import ServiceError
    from memory.services import exchange

    _refuse_elsewhere(options)
    path: Path = options["file"]
    try:
        with path.open("rb") as file:
            records = exchange.read_records(file)
        principal = _principal(options)
        _make_owner(principal, options["owner"])
        report = exchange.import_records(
            principal, records, owner=options["owner"], progress=_progress
        )
    except OSError as error:
        raise Refused(USAGE, _unusable(path, error)) from None
    except ServiceError as error:
        raise _told(error) from None
    told = {**asdict(report), "seconds": round(report.seconds, 1)}
    return {**told, "vectors": "manage.py jobs run"} if api.is_local else told


def show_read(answer: Mapping[str, Any]) -> list[str]:
    """An import for people."""
    lines = [f"record {each['place']}: {each['message']}" for each in answer["problems"]]
    lines.append(
        f"{answer['imported']:,} imported, {answer['updated']:,} updated, "
        f"{answer['skipped']:,} skipped in {answer['seconds']} s"
    )
    if "vectors" in answer:
        lines.append("A studio makes their vectors when it starts; or now: manage.py jobs run")
    return lines


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


def _make_owner(principal: Principal, name: str | None) -> None:
    from memory.errors import NotFound
    from memory.services import access, keys

    if not name or not principal.may("manage"):
        return
    try:
        access.find(name)
    except NotFound:
        keys.create(principal, name)


def _refuse_elsewhere(options: Mapping[str, Any]) -> None:
    if options["url"] or env.text("MEMORY_STUDIO_URL"):
        message = "This works on the studio's own machine only; elsewhere use its pages."
        raise Refused(USAGE, {"code": "usage", "message": message})


def _told(error: ServiceError) -> Refused:
    return Refused(REFUSED, {"code": error.code, "message": error.message, "fields": error.fields})


def _unusable(path: Path | None, error: OSError) -> dict[str, str]:
    return {"code": "file", "message": f"Cannot use {path}: {error.strerror}."}


def _progress(done: int, total: int) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{done:,} of {total:,}" + ("\n" if done == total else ""))
