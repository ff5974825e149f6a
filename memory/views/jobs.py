"""Jobs in the studio: progress as a notice that polls while the job runs, cancel and retry."""

from __future__ import annotations

import uuid
from typing import Any, Final

from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse

from memory.models import Job
from memory.services import jobrows
from memory.views import engine
from memory.views._principal import StudioRequest, studio
from memory.views._render import render_page

TEMPLATE: Final = "memory/job.html"
ENDED: Final = "job-ended"
"""The event that tells the page to read again what a job changed."""


@studio("GET")
def show(request: StudioRequest, job_id: uuid.UUID) -> HttpResponse:
    """One job: its notice for htmx, else a page of its own."""
    return _show(request, jobrows.get(request.principal, job_id))


@studio("POST")
def cancel(request: StudioRequest, job_id: uuid.UUID) -> HttpResponse:
    """Ask a job to stop."""
    job = jobrows.cancel(request.principal, job_id)
    return _answer(request, job)


@studio("POST")
def retry(request: StudioRequest, job_id: uuid.UUID) -> HttpResponse:
    """Start a failed or cancelled job again."""
    job = jobrows.retry(request.principal, job_id)
    return _answer(request, job)


def started(request: StudioRequest, job: Job) -> HttpResponse:
    """The answer to a form that started a job: its notice, and the dialog closes."""
    if not request.htmx:
        return _to_page(job)
    response = render(request, f"{TEMPLATE}#notice", {"job": job})
    response["HX-Retarget"] = "#notices"
    response["HX-Reswap"] = "innerHTML"
    response["HX-Trigger"] = "dialog-close, job-started"
    return response


def _answer(request: StudioRequest, job: Job) -> HttpResponse:
    if not request.htmx:
        return _to_page(job)
    if request.htmx.target == "engine-work":
        return engine.work_region(request)
    return _show(request, job)


def _show(request: StudioRequest, job: Job) -> HttpResponse:
    context: dict[str, Any] = {"job": job}
    before = request.htmx.target or "" if request.htmx else ""
    partials = {before: "notice"} if before.startswith("job-") else {}
    response = render_page(request, TEMPLATE, context, partials=partials)
    if not job.is_active:
        response["HX-Trigger"] = ENDED
    return response


def _to_page(job: Job) -> HttpResponse:
    return HttpResponseRedirect(reverse("job", args=[job.pk]), status=303)
