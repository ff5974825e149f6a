"""``/api/memory/import`` and ``/api/memory/export``: files of memories in and out."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping
from typing import IO, Any, Final, cast

from django.conf import settings
from django.http import HttpRequest, StreamingHttpResponse, UnreadablePostError
from django.utils.translation import gettext as _
from ninja import Query, Router, Status
from pydantic import ValidationError

from memory.api.auth import caller
from memory.api.errors import places
from memory.api.present import job_out
from memory.api.schemas.exchange import (
    ExportQuery,
    ImportQuery,
    ImportReportOut,
    ImportStarted,
)
from memory.errors import Invalid, TooLarge
from memory.services import access, exchange, exports, metadata_filters
from memory.services.import_store import ImportOrder
from memory.services.listing import MemoryFilter

router = Router(tags=["memory"], by_alias=True)

SPOOL_BYTES: Final = 1 << 20
_BINARY: Final = {"schema": {"type": "string", "format": "binary"}}
_BODY: Final = {
    "required": True,
    "content": {
        "application/octet-stream": _BINARY,
        "multipart/form-data": {
            "schema": {
                "type": "object",
                "required": ["file"],
                "properties": {"file": {"type": "string", "format": "binary"}},
            }
        },
    },
}
_FILES: Final = {
    "application/json": {"schema": {"type": "object"}},
    **dict.fromkeys(("application/x-ndjson", "text/csv", "application/zip"), _BINARY),
}


@router.post(
    "/import",
    response={200: ImportReportOut, 202: ImportStarted},
    openapi_extra={"requestBody": _BODY},
)
def import_memories(request: HttpRequest, options: Query[ImportQuery]) -> Status[dict[str, Any]]:
    """Import a file of any known format: the body itself, or the field ``file`` of a form.

    A job does it (202). With ``dryRun`` nothing is written and the answer tells what would come
    in (200).
    """
    principal = caller(request)
    access.require(principal, "write")
    chosen = _with_fields(request, options)
    order = ImportOrder(
        owner=chosen.api_key_id or None,
        format=chosen.format,
        assistant=chosen.assistant,
        dry_run=chosen.dry_run,
        name=chosen.name,
    )
    with _file(request) as file:
        if order.dry_run:
            report = exchange.import_file(principal, file, order)
            return Status(200, {**report.as_json(), "sample": report.sample})
        job = exchange.start_import(principal, file, order)
    return Status(202, {"jobId": str(job.pk), "job": job_out(job)})


@router.get(
    "/export",
    response={200: None},
    openapi_extra={"responses": {200: {"description": "The file", "content": _FILES}}},
)
def export_memories(request: HttpRequest, options: Query[ExportQuery]) -> StreamingHttpResponse:
    """The memories that the filters match, as a file: by default all that are live or archived."""
    wanted = MemoryFilter(
        owner=options.api_key_id or None,
        type=options.type,
        session=options.session_id or None,
        q=options.q,
        state=options.state,
        metadata=metadata_filters.parse(options.filters),
    )
    export = exports.export(caller(request), options.format, wanted)
    return StreamingHttpResponse(
        export.pieces,
        content_type=export.content_type,
        headers={"Content-Disposition": f'attachment; filename="{export.file_name}"'},
    )


def _with_fields(request: HttpRequest, options: ImportQuery) -> ImportQuery:
    """The options of the query, and those that stand beside the file of a form."""
    if request.content_type != "multipart/form-data":
        return options
    upload = request.FILES.get("file")
    name = getattr(upload, "name", None)
    given: Mapping[str, Any] = {
        **({"name": name[:200]} if name else {}),
        **request.POST.dict(),
        **request.GET.dict(),
    }
    try:
        return ImportQuery.model_validate(dict(given))
    except ValidationError as error:
        found = places(error.errors(include_url=False, include_context=False, include_input=False))
        raise Invalid(_("Some fields are not valid."), fields=found) from None


@contextlib.contextmanager
def _file(request: HttpRequest) -> Iterator[IO[bytes]]:
    """The file that was sent, able to seek."""
    if request.content_type == "multipart/form-data":
        upload = request.FILES.get("file")
        if upload is None or not upload.size:
            raise _missing()
        yield cast(IO[bytes], upload.file)
        return
    with tempfile.SpooledTemporaryFile(max_size=SPOOL_BYTES) as spooled:
        _spool(request, cast(IO[bytes], spooled))
        yield cast(IO[bytes], spooled)


def _spool(request: HttpRequest, spooled: IO[bytes]) -> None:
    try:
        while block := request.read(SPOOL_BYTES):
            spooled.write(block)
            if spooled.tell() > settings.MEMORY_STUDIO_MAX_BODY_BYTES:
                raise TooLarge(_("The body is too large."))
    except UnreadablePostError:
        raise Invalid(_("The body ended too early.")) from None
    if not spooled.tell():
        raise _missing()
    spooled.seek(0)


def _missing() -> Invalid:
    message = _("A file is needed.")
    return Invalid(message, fields={"file": message})
