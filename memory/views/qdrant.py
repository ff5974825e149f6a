"""The panel Qdrant of the tab Engine: where it is, and tests of it."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.utils.translation import gettext as _

from memory.errors import Conflict, Invalid
from memory.services import mirroring, qdrant, settings
from memory.services.qdrant import Tried
from memory.settings_forms import QdrantForm
from memory.views import engine
from memory.views._notice import Notice
from memory.views._principal import StudioRequest, studio
from memory.views._render import render_page


@studio("POST")
def save(request: StudioRequest) -> HttpResponse:
    """Change where Qdrant is; when it is on, say how a real search went."""
    form = QdrantForm(request.POST, auto_id="set-%s")
    if form.is_valid():
        try:
            chosen = settings.update_qdrant(request.principal, form.changes())
            return engine.saved(request, _notice(chosen.qdrant_enabled), "engine-qdrant")
        except (Invalid, Conflict) as error:
            form.absorb(error)
    return engine.refused(request, "qdrant_form", form)


def _notice(is_on: bool) -> Notice:
    saved = _("Qdrant settings saved.")
    if not is_on:
        return Notice(saved)
    tried = qdrant.probe(settings.get())
    if tried.ok:
        return Notice(f"{saved} {_found(tried)}")
    return Notice(f"{saved} {tried.message}", level="warn")


@studio("POST")
def test(request: StudioRequest) -> HttpResponse:
    """Search Qdrant for real, and say how long it took."""
    tried = qdrant.health(request.principal)
    return _tools(request, {"tried": tried, "told": _found(tried)})


@studio("POST")
def search(request: StudioRequest) -> HttpResponse:
    """A search test of Qdrant alone."""
    query = request.POST.get("query", "")
    try:
        done = qdrant.search(request.principal, query, 5)
    except Invalid as error:
        refusal = Tried(False, 0, error.code, error.message)
        return _tools(request, {"tried": refusal, "query": query}, status=error.status)
    told = _("Nothing was found.") if done.tried.ok and not done.hits else ""
    return _tools(request, {"tried": done.tried, "told": told, "hits": done.hits, "query": query})


@studio("POST")
def clean_up(request: StudioRequest) -> HttpResponse:
    """Remove points of expired memories and of memories that are no more."""
    done = qdrant.clean_up(request.principal)
    told = _("%(expired)s points of expired memories and %(strays)s strays removed.") % {
        "expired": done.expired,
        "strays": done.strays,
    }
    return _tools(request, {"tried": done.tried, "told": told})


@studio("POST")
def build(request: StudioRequest) -> HttpResponse:
    """Build the collection anew, beside the live one."""
    tried = mirroring.build_again(request.principal)
    told = _("The build has started; searches go on meanwhile.")
    response = _tools(request, {"tried": tried, "told": told})
    response["HX-Trigger"] = "job-started"
    return response


def _found(tried: Tried) -> str:
    return _("A real search took %(ms)s ms.") % {"ms": tried.latency_ms}


def _tools(request: StudioRequest, result: dict[str, Any], *, status: int = 200) -> HttpResponse:
    is_part = bool(request.htmx) and request.htmx.target == "qdrant-tools"
    context = {} if is_part else engine.full(request)
    context["qdrant_result"] = result
    return render_page(request, engine.TEMPLATE, context, partials=engine.PARTIALS, status=status)
