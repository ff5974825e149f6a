"""The card of the providers on the Engine page: add, change, try, move, remove."""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpResponse
from django.utils.translation import gettext as _

from memory.errors import Conflict, Invalid
from memory.provider_forms import ProviderForm, initial_of
from memory.provider_table import Entry
from memory.services import provider_checks, providers
from memory.views._notice import Notice
from memory.views._principal import StudioRequest, studio
from memory.views._render import after_change, render_page, sent
from memory.views.engine import changed

FORM: Final = "memory/provider_edit.html"
TEST: Final = "memory/provider_test.html"
DIALOG: Final = {"dialog": "form"}
REGION: Final = "engine-providers"


@studio("GET", "POST")
def add(request: StudioRequest) -> HttpResponse:
    """The form for a new provider; another kind in it changes what it suggests."""
    initial = {
        "kind": request.GET.get("kind", "openai"),
        "name": request.GET.get("name", ""),
        "enabled": True,
    }
    form = ProviderForm(sent(request), initial=initial, auto_id="provider-%s")
    if request.method == "POST" and form.is_valid():
        try:
            made = providers.create(request.principal, form.spec())
            text = _("The provider “%(name)s” is set up. Test it, then choose it in the settings.")
            return _done(request, text % {"name": made.name})
        except (Invalid, Conflict) as error:
            form.absorb(error)
    return _form(request, form, None)


@studio("GET", "POST")
def edit(request: StudioRequest, provider: str) -> HttpResponse:
    """The form of a provider that is set up in the studio."""
    entry = providers.get(request.principal, provider)
    form = ProviderForm(
        sent(request), initial=initial_of(entry), entry=entry, auto_id="provider-%s"
    )
    if request.method == "POST" and form.is_valid():
        try:
            revision = form.cleaned_data["revision"]
            providers.update(request.principal, provider, form.changes(), revision=revision)
            return _done(request, _("The provider “%(name)s” is saved.") % {"name": entry.name})
        except (Invalid, Conflict) as error:
            form.absorb(error)
    return _form(request, form, entry)


@studio("POST")
def test(request: StudioRequest, provider: str) -> HttpResponse:
    """Ask it for real and show what it said."""
    entry = providers.get(request.principal, provider)
    checks = provider_checks.check(request.principal, provider)
    context = {"entry": entry, "checks": checks, "is_fine": all(check.ok for check in checks)}
    return render_page(request, TEST, context, partials=DIALOG)


@studio("POST")
def move(request: StudioRequest, provider: str, step: str) -> HttpResponse:
    """One place up or down among those of the studio."""
    entry = providers.get(request.principal, provider)
    listed = providers.list_providers(request.principal)
    order = [row.id for row in listed if not row.is_read_only]
    if entry.id in order:
        place = order.index(entry.id)
        other = max(0, min(len(order) - 1, place + (-1 if step == "up" else 1)))
        order[place], order[other] = order[other], order[place]
        providers.reorder(request.principal, order)
    return _region(request, _("The order is changed."))


@studio("POST")
def remove(request: StudioRequest, provider: str) -> HttpResponse:
    """Remove it with its credential; one that the settings use stays."""
    entry = providers.get(request.principal, provider)
    try:
        providers.delete(request.principal, provider)
    except Conflict as error:
        return _region(request, error.message, level="warn")
    return _region(request, _("The provider “%(name)s” is removed.") % {"name": entry.name})


def _form(request: StudioRequest, form: ProviderForm, entry: Entry | None) -> HttpResponse:
    status = form.status if form.is_bound else 200
    context = {"form": form, "entry": entry}
    return render_page(request, FORM, context, partials=DIALOG, status=status)


def _done(request: StudioRequest, text: str) -> HttpResponse:
    def answer(notice: Notice) -> HttpResponse:
        response = changed(request, notice, REGION)
        response["HX-Trigger"] += ", dialog-close"
        return response

    return after_change(request, Notice(text), fragment=answer, page="engine")


def _region(request: StudioRequest, text: str, **more: Any) -> HttpResponse:
    return after_change(
        request,
        Notice(text, **more),
        fragment=lambda notice: changed(request, notice, REGION),
        page="engine",
    )
