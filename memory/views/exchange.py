"""Export everything, import a file."""

from __future__ import annotations

from typing import Final

from django.http import HttpResponse, StreamingHttpResponse

from memory.clock import iso, now
from memory.errors import ServiceError
from memory.forms import ImportForm
from memory.services import exchange
from memory.views._principal import StudioRequest, studio
from memory.views._render import current_owner, owners, render_page, sent
from memory.views.jobs import started

DIALOG: Final = {"dialog": "form"}


@studio("GET")
def export(request: StudioRequest) -> StreamingHttpResponse:
    """Every memory of the chosen owner, or of all, as one JSON document."""
    pieces = exchange.export_all(request.principal, current_owner(request) or None)
    stamp = (iso(now()) or "").replace(":", "-")
    return StreamingHttpResponse(
        pieces,
        content_type="application/json; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="memory-export-{stamp}.json"'},
    )


@studio("GET", "POST")
def import_file(request: StudioRequest) -> HttpResponse:
    """Take a file; a job reads it and reports what came in."""
    form = ImportForm(
        sent(request),
        request.FILES if request.method == "POST" else None,
        owners=owners(request),
        initial={"owner": current_owner(request)},
        auto_id="import-%s",
    )
    if request.method == "POST" and form.is_valid():
        file, owner = form.cleaned_data["file"], form.cleaned_data["owner"] or None
        try:
            job = exchange.start_import(request.principal, file.file, owner=owner)
            return started(request, job)
        except ServiceError as error:
            form.absorb(error)
    status = form.status if form.is_bound else 200
    return render_page(
        request, "memory/import.html", {"form": form}, partials=DIALOG, status=status
    )
