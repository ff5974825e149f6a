"""Extraction in the studio: trying it on a turn, and its settings."""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _

from engine.extract.facts import Speaker
from memory.errors import Conflict, Invalid
from memory.extraction_forms import TurnForm, extraction_form
from memory.services import access
from memory.services.extraction import learning, settings
from memory.services.extraction.learning import Turn
from memory.views._notice import Notice, remember
from memory.views._principal import StudioRequest, studio
from memory.views._render import current_owner, owners, render_page, sent

TEMPLATE: Final = "memory/extract.html"
PARTIALS: Final = {"playground-extract": "extract"}
SETTINGS: Final = "memory/extraction.html"
MOST_SHOWN: Final = 50


@studio("GET", "POST")
def extract(request: StudioRequest) -> HttpResponse:
    """What a turn would give, or (button Store) gives."""
    form = TurnForm(sent(request), auto_id="turn-%s")
    context: dict[str, Any] = {"turn_form": form, "learnt": None}
    if request.method == "POST" and form.is_valid():
        turn = Turn(form.cleaned_data["text"], Speaker(form.cleaned_data["role"]))
        owner = current_owner(request) or str(access.default_key().uid)
        is_stored = "store" in request.POST
        act = learning.learn if is_stored else learning.preview
        try:
            learnt = act(request.principal, turn, owner=owner)
            context |= {
                "learnt": learnt,
                "dropped": learnt.dropped[:MOST_SHOWN],
                "is_stored": is_stored,
                "owner_name": next(k.name for k in owners(request) if str(k.uid) == owner),
            }
        except (Invalid, Conflict) as error:
            form.absorb(error)
    status = form.status if form.is_bound and form.errors else 200
    return render_page(request, TEMPLATE, context, partials=PARTIALS, status=status)


@studio("GET", "POST")
def edit_settings(request: StudioRequest) -> HttpResponse:
    """The settings of extraction."""
    form = extraction_form(settings.get(), sent(request))
    if request.method == "POST" and form.is_valid():
        try:
            settings.update(request.principal, form.changes())
            remember(request, Notice(_("Settings saved.")))
            return HttpResponseRedirect(reverse("extraction"), status=303)
        except (Invalid, Conflict) as error:
            form.absorb(error)
    status = form.status if form.is_bound and form.errors else 200
    return render_page(request, SETTINGS, {"form": form}, status=status)
