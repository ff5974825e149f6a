"""The card of the memory backends on the Engine page: check them, copy to one, read from one."""

from __future__ import annotations

from django.http import HttpResponse, HttpResponseRedirect
from django.urls import reverse

from memory.services.backends import transfers
from memory.services.backends.states import backends
from memory.views import jobs
from memory.views._principal import StudioRequest, studio
from memory.views._render import render_page
from memory.views.engine import PARTIALS, TEMPLATE


@studio("POST")
def check(request: StudioRequest) -> HttpResponse:
    """Ask every backend now; its health is shown for five minutes."""
    found = backends(request.principal, check=True)
    if not request.htmx:
        return HttpResponseRedirect(reverse("engine") + "#engine-backends", status=303)
    return render_page(request, TEMPLATE, {"backends": found}, partials=PARTIALS)


@studio("POST")
def copy(request: StudioRequest, backend_id: str) -> HttpResponse:
    """Start the job that copies to a backend what it lacks."""
    return jobs.started(request, transfers.start(request.principal, "copy", backend_id))


@studio("POST")
def pull(request: StudioRequest, backend_id: str) -> HttpResponse:
    """Start the job that reads all that a backend has."""
    return jobs.started(request, transfers.start(request.principal, "pull", backend_id))
