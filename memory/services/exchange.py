"""Imports of files, ours and other systems': with a report, a dry run, progress and cancel."""

from __future__ import annotations

import io
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import IO, Any, Final

from django.db import DatabaseError, transaction
from django.utils.translation import gettext as _

from engine.exchange.found import Found, Item, Place, Unreadable
from engine.exchange.read import Format, Reading
from memory import jobs
from memory.clock import iso
from memory.errors import Conflict, Invalid, TierDown
from memory.models import Job, Memory
from memory.principal import ALL_SCOPES, Principal
from memory.services import access, jobrows, uploads
from memory.services.import_report import ImportReport, refusal
from memory.services.import_store import Importer, ImportOrder

IMPORT, CHECK = "import", "import-check"
SMALL_BYTES: Final = 256 * 1024
TELL_EVERY: Final = 1000
TELL_WITHIN_S: Final = 1.0
SAMPLE_ITEMS: Final = 200
"""So many items are looked at for a sample."""

Progress = Callable[[int, int], None]


def memory_json(memory: Memory) -> dict[str, Any]:
    """A memory under the field names of the first seed, and ours."""
    use = getattr(memory, "use", None)
    return {
        "id": str(memory.pk),
        "apiKeyId": str(memory.api_key.uid),
        "apiKeyName": memory.api_key.name,
        "sessionId": memory.session_id,
        "type": memory.type,
        "key": memory.key,
        "content": memory.content,
        "metadata": memory.metadata,
        "createdAt": iso(memory.created_at),
        "updatedAt": iso(memory.updated_at),
        "expiresAt": iso(memory.expires_at),
        "occurredAt": iso(memory.occurred_at),
        "archivedAt": iso(memory.archived_at),
        "accessCount": use.access_count if use else 0,
        "lastAccessedAt": iso(use.last_accessed_at) if use else None,
        "pinned": memory.is_pinned,
        "shared": memory.is_shared,
        "revision": memory.revision,
        "tokens": memory.tokens,
    }


def import_records(
    principal: Principal,
    records: Sequence[object],
    *,
    owner: str | None,
    progress: Progress | None = None,
) -> ImportReport:
    """Store records in the fields of our own export; what cannot be stored is reported."""
    items = (Found(Place(number), record) for number, record in enumerate(records, start=1))
    importer = Importer(principal, ImportOrder(owner=owner), kind=Format.JSON)
    return _run(importer, items, lambda done: progress and progress(done, len(records)))


def import_file(
    principal: Principal,
    file: IO[bytes],
    order: ImportOrder,
    *,
    progress: Progress | None = None,
) -> ImportReport:
    """Import a file that can seek, or with ``dry_run`` only tell what would come in.

    Raises ``Invalid`` when the file as a whole cannot be read; what an archive that turns out to
    be damaged gave before that is stored.
    """
    try:
        reading = _reading(file, order)
        importer = Importer(principal, order, kind=reading.format)

        def tell(done: int) -> None:
            if progress is not None:
                # How many there are is only known at the end.
                progress(done, max(done, int(done / (reading.share or 1))))

        return _run(importer, reading.items(), tell)
    except Unreadable as error:
        raise refusal(error) from None


def _run(importer: Importer, items: Iterable[Item], tell: Callable[[int], object]) -> ImportReport:
    told = time.monotonic()
    for number, item in enumerate(items, start=1):
        # Also when nothing of it can be stored: a job that tells nothing cannot be cancelled, and
        # is taken for dead.
        is_late = number % TELL_EVERY == 0 or time.monotonic() - told > TELL_WITHIN_S
        if importer.take(item) or is_late:
            tell(importer.report.total)
            told = time.monotonic()
    importer.flush()
    tell(importer.report.total)
    return importer.report


def _reading(file: IO[bytes], order: ImportOrder) -> Reading:
    return Reading(file, order.name, wanted=format_of(order.format), assistant=order.assistant)


def format_of(name: str) -> Format:
    """The format with a name; none means to look. Raises ``Invalid``."""
    try:
        return Format(name or Format.AUTO)
    except ValueError:
        choices = ", ".join(Format)
        message = _("One of: %(choices)s.") % {"choices": choices}
        raise Invalid(message, fields={"format": message}) from None


def start_import(principal: Principal, file: IO[bytes], order: ImportOrder) -> Job:
    """Keep an uploaded file and import it in the background; the job's result is the report.

    With ``dry_run`` the job only checks it, and ``confirm`` imports the same file.
    """
    access.require(principal, "write")
    format_of(order.format)
    owner = order.owner
    if owner or principal.owner is not None:
        owner = str(access.write_owner(principal, owner).uid)
    try:
        size = file.seek(0, io.SEEK_END)
        file.seek(0)
        name = uploads.keep(file)
    except DatabaseError:
        raise TierDown(_("The file cannot be kept: the disk may be full.")) from None
    params = {
        "file": name,
        "name": order.name[:200],
        "owner": owner,
        "format": order.format,
        "assistant": order.assistant,
        "shares": principal.may("manage"),
    }
    if not order.dry_run:
        return _enqueue(principal, IMPORT, params)
    return _check_soon(principal, params, is_small=size <= SMALL_BYTES)


def _check_soon(principal: Principal, params: dict[str, Any], *, is_small: bool) -> Job:
    """Have a file checked: a small one at once, so that its report is the answer."""
    job = _enqueue(principal, CHECK, params, dispatch=not is_small)
    if is_small:
        jobs.run(job.pk, {CHECK: run_check}, role="request")
        job.refresh_from_db()
    return job


def confirm(principal: Principal, job_id: str | uuid.UUID) -> Job:
    """Import the file that a job has checked. Raises ``Conflict`` when it cannot (any more)."""
    access.require(principal, "write")
    job = jobrows.get(principal, job_id)
    if job.state != Job.State.SUCCEEDED or not is_kept(job):
        raise Conflict(_("This file was imported already, or is no longer there."), code="no_file")
    return _enqueue(principal, IMPORT, job.params)


def discard(principal: Principal, job_id: str | uuid.UUID) -> None:
    """Forget the file that a job has checked; nothing of it was stored."""
    access.require(principal, "write")
    job = jobrows.get(principal, job_id)
    if job.kind != CHECK:
        raise Conflict(_("This file was imported already, or is no longer there."), code="no_file")
    if job.is_active:
        jobs.cancel(job)
    uploads.forget(job.params["file"])


def is_kept(job: Job) -> bool:
    """Whether the file that a job has checked can still be imported."""
    return job.kind == CHECK and uploads.is_kept(job.params["file"])


def _enqueue(
    principal: Principal, kind: str, params: dict[str, Any], *, dispatch: bool = True
) -> Job:
    order = jobs.Order(
        kind,
        params={name: value for name, value in params.items() if name != "report"},
        dedupe_key=f"{kind}-{params['file']}",
        owner_id=principal.owner,
        requested_by=principal.label,
    )
    return jobs.enqueue(order, dispatch=dispatch)


def sample(principal: Principal, job: Job) -> list[dict[str, Any]]:
    """A few memories as the file that a job has checked would make them; none when it is gone.

    They are read from the file again: a report that is kept holds no texts.
    """
    if not is_kept(job):
        return []
    order = _order_of(job, dry_run=True)
    try:
        reading = _reading(uploads.read(job.params["file"]), order)
        importer = Importer(principal, order, kind=reading.format)
        for item in islice(reading.items(), SAMPLE_ITEMS):
            importer.take(item)
    except Unreadable:
        return []
    return importer.report.sample


def run_import(context: jobs.JobContext) -> dict[str, Any]:
    """Handler of the job ``import``. Going on after a crash starts over: upserts repeat safely."""
    if "report" in context.params:
        # The file was gone already when the process was killed.
        done: dict[str, Any] = context.params["report"]
        return done
    result = _import(context, dry_run=False)
    with transaction.atomic():
        context.save_params(report=result)
        uploads.forget(context.params["file"])
    return result


def run_check(context: jobs.JobContext) -> dict[str, Any]:
    """Handler of the job ``import-check``: what the import would do."""
    return _import(context, dry_run=True)


def _import(context: jobs.JobContext, *, dry_run: bool) -> dict[str, Any]:
    file = uploads.read(context.params["file"])
    context.progress(0, 0, force=True)
    scopes = ALL_SCOPES if context.params["shares"] else frozenset({"write"})
    principal = Principal("system", context.job.requested_by or "system", scopes)
    order = _order_of(context.job, dry_run=dry_run)
    report = import_file(principal, file, order, progress=context.progress)
    context.progress(report.total, report.total, force=True)
    return report.as_json()


def _order_of(job: Job, *, dry_run: bool) -> ImportOrder:
    params = job.params
    return ImportOrder(
        owner=params["owner"],
        format=params.get("format", Format.AUTO),
        assistant=params.get("assistant", False),
        dry_run=dry_run,
        name=params.get("name", ""),
    )
