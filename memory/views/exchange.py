"""Export in every format; import of a file: first what it would do, then the import itself."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Any, Final

from django.http import HttpResponse, HttpResponseRedirect, StreamingHttpResponse
from django.urls import reverse

from memory.errors import ServiceError
from memory.forms import ImportForm
from memory.models import Job
from memory.services import exchange, exports, jobrows
from memory.services.import_store import ImportOrder
from memory.services.listing import MemoryFilter
from memory.views._list_state import list_params, list_state
from memory.views._principal import StudioRequest, studio
from memory.views._render import current_owner, owners, render_page, sent
from memory.views.jobs import started

DIALOG: Final = {"dialog": "form"}
CHECK: Final = {"dialog": "form", "import-check": "check"}


@studio("GET")
def export(request: StudioRequest) -> StreamingHttpResponse:
    """What the list shows as a file; without a filter the archived memories as well."""
    kind = request.GET.get("format", "json")
    kind = kind if kind in exports.EXPORT_FORMATS else "json"
    made = exports.export(request.principal, kind, _wanted(request))
    return StreamingHttpResponse(
        made.pieces,
        content_type=made.content_type,
        headers={"Content-Disposition": f'attachment; filename="{made.file_name}"'},
    )


def _wanted(request: StudioRequest) -> MemoryFilter:
    state = list_state(request, list_params(request))
    is_narrowed = bool(state.q or state.type or state.session or state.state != "live")
    wanted = replace(state.filter(), page=1)
    return wanted if is_narrowed else replace(wanted, state="kept")


@studio("GET", "POST")
def import_file(request: StudioRequest) -> HttpResponse:
    """Take a file; a job looks at it and tells what would come in."""
    form = ImportForm(
        sent(request),
        request.FILES if request.method == "POST" else None,
        owners=owners(request),
        initial={"owner": current_owner(request)},
        auto_id="import-%s",
    )
    if request.method == "POST" and form.is_valid():
        try:
            file = form.cleaned_data["file"]
            job = exchange.start_import(request.principal, file.file, _order(form))
        except ServiceError as error:
            form.absorb(error)
        else:
            return _checking(request, job)
    status = form.status if form.is_bound else 200
    return render_page(
        request, "memory/import.html", {"form": form}, partials=DIALOG, status=status
    )


def _order(form: ImportForm) -> ImportOrder:
    fields = form.cleaned_data
    return ImportOrder(
        owner=fields["owner"] or None,
        format=fields["format"],
        assistant=fields["assistant"],
        dry_run=True,
        name=fields["file"].name,
    )


@studio("GET")
def show_check(request: StudioRequest, job_id: uuid.UUID) -> HttpResponse:
    """What a file would bring; while a job looks at it, how far it is."""
    return _check_page(request, jobrows.get(request.principal, job_id))


@studio("POST")
def run_checked(request: StudioRequest, job_id: uuid.UUID) -> HttpResponse:
    """Import the file that was checked."""
    return started(request, exchange.confirm(request.principal, job_id))


@studio("POST")
def discard(request: StudioRequest, job_id: uuid.UUID) -> HttpResponse:
    """Forget the file that was checked."""
    exchange.discard(request.principal, job_id)
    if not request.htmx:
        return HttpResponseRedirect(reverse("memories"), status=303)
    return HttpResponse(status=204, headers={"HX-Trigger": "dialog-close"})


def _checking(request: StudioRequest, job: Job) -> HttpResponse:
    if not request.htmx:
        return HttpResponseRedirect(reverse("import-check", args=[job.pk]), status=303)
    return _check_page(request, job)


def _check_page(request: StudioRequest, job: Job) -> HttpResponse:
    context: dict[str, Any] = {"job": job, "name": job.params.get("name", "")}
    if job.state == Job.State.SUCCEEDED:
        context["sample"] = exchange.sample(request.principal, job)
        context["is_kept"] = exchange.is_kept(job)
    return render_page(request, "memory/import_check.html", context, partials=CHECK)
