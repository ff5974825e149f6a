"""Compaction in the studio: preview of the exact text, run as a job, undo."""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from memory.errors import ServiceError
from memory.forms import CompactForm
from memory.services import compaction
from memory.services.compaction import CompactRequest
from memory.views import engine, memories
from memory.views._notice import Notice
from memory.views._principal import StudioRequest, studio
from memory.views._render import after_change, current_owner, here, owners, render_page
from memory.views.jobs import started

DIALOG: Final = {"dialog": "form"}
TEMPLATE: Final = "memory/compact.html"
DEFAULTS: Final = {"kind": "age", "days": "30", "max_tokens": "4000", "session": ""}


@studio("GET", "POST")
def compact(request: StudioRequest) -> HttpResponse:
    """What a compaction would write (GET), and running it (POST)."""
    sent = request.POST if request.method == "POST" else request.GET
    values = {name: sent.get(name, value) for name, value in DEFAULTS.items()}
    values["owner"] = sent.get("owner", current_owner(request))
    form = CompactForm(values, owners=owners(request), auto_id="compact-%s")
    context: dict[str, Any] = {"form": form, "plans": None}
    if form.is_valid():
        try:
            wanted = _wanted(form)
            if request.method == "POST":
                return started(request, compaction.start(request.principal, wanted))
            plans = compaction.preview(request.principal, wanted)
            context |= {"plans": plans, "worthwhile": any(plan.changing for plan in plans)}
        except ServiceError as error:
            form.absorb(error)
    status = form.status if form.errors else 200
    return render_page(request, TEMPLATE, context, partials=DIALOG, status=status)


@studio("POST")
def undo(request: StudioRequest, compaction_id: str) -> HttpResponse:
    """Bring back what one compaction archived; its summary goes."""
    undone = compaction.undo(request.principal, compaction_id)
    count = undone.changed_count
    notice = Notice(_("Compaction undone: %(count)s memories are back.") % {"count": count})
    if request.htmx and here(request).startswith(reverse("engine")):
        return engine.changed(request, notice, "engine-compactions")
    return after_change(request, notice, fragment=lambda n: memories.changed(request, n))


def _wanted(form: CompactForm) -> CompactRequest:
    values = form.cleaned_data
    return CompactRequest(
        kind=values["kind"],
        owner=values["owner"] or None,
        all_owners=not values["owner"],
        older_than_days=values["days"] or 30,
        max_tokens=values["max_tokens"] or 4000,
        session=values["session"] or None,
    )
