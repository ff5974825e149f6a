"""The tab Playground: simulate a retrieval and see why each memory came or did not."""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpResponse

from engine.types import Match, Mode
from memory.errors import Invalid
from memory.extraction_forms import TurnForm
from memory.forms import PlaygroundForm
from memory.gateway_forms import request_form
from memory.models import ApiKey
from memory.principal import Principal
from memory.services import listing, retrieval, settings
from memory.services.degraded import explain
from memory.services.retrieval import RetrievalView, RetrieveRequest
from memory.views import _expected, _lens, _trace
from memory.views._principal import StudioRequest, studio
from memory.views._render import current_owner, owners, render_page

TEMPLATE: Final = "memory/playground.html"
PARTIALS: Final = {"playground-results": "results"}
STRATEGY_MODES: Final = {"recent": "recent", "semantic": "vector", "hybrid": "hybrid"}


@studio("GET")
def index(request: StudioRequest) -> HttpResponse:
    """The form and, once there is a query, what came back. All of it is in the address."""
    owner = current_owner(request)
    sessions = listing.sessions(request.principal, owner or None)
    form = PlaygroundForm(_filled(request), sessions=sessions)
    context: dict[str, Any] = {
        "form": form,
        "owner_name": _owner_name(owners(request), owner),
        "result": None,
        "turn_form": TurnForm(auto_id="turn-%s"),
    }
    if form.is_valid():
        try:
            context |= _answer(request, form, owner)
        except Invalid as error:
            form.absorb(error)
    status = form.status if form.errors else 200
    return render_page(request, TEMPLATE, context, partials=PARTIALS, status=status)


def _filled(request: StudioRequest) -> dict[str, str]:
    chosen = settings.get()
    defaults = {
        "q": "",
        "mode": STRATEGY_MODES.get(chosen.strategy, "hybrid"),
        "match": "any",
        "session": "",
        "budget": str(chosen.max_tokens),
        "limit": "20",
        "memory": "",
    }
    return {name: request.GET.get(name, value) for name, value in defaults.items()}


def _is_asked(request: StudioRequest, form: PlaygroundForm) -> bool:
    is_recent = form.cleaned_data["mode"] == Mode.RECENT and "mode" in request.GET
    return bool(form.cleaned_data["q"].strip()) or is_recent


def _owner_name(choices: list[ApiKey], owner: str) -> str:
    return next((key.name for key in choices if str(key.uid) == owner), "")


def _answer(request: StudioRequest, form: PlaygroundForm, owner: str) -> dict[str, Any]:
    """What came back, and what became of the memory that was expected."""
    principal, values = request.principal, form.cleaned_data
    expected = _expected.find(principal, values["memory"], owner)
    if not _is_asked(request, form):
        return {"expected": expected}
    wanted = _request(values, owner)
    view = None
    if expected is not None and expected.memory is not None:
        expected = _expected.explain(principal, wanted, expected.memory)
        view = expected.told.view if expected.told else None
    view = view or retrieval.retrieve(principal, wanted)
    asked = request_form(values["q"], values["session"]) if values["q"].strip() else None
    result = _result(principal, view)
    return {"expected": expected, "result": result, "request_form": asked}


def _request(values: dict[str, Any], owner: str) -> RetrieveRequest:
    return RetrieveRequest(
        query=values["q"],
        mode=Mode(values["mode"]),
        match=Match(values["match"]),
        limit=values["limit"],
        max_tokens=values["budget"],
        owner=owner or None,
        all_owners=not owner,
        session=values["session"] or None,
        reach="global" if owner else "apiKey",
        trace=True,
    )


def _result(principal: Principal, view: RetrievalView) -> dict[str, Any]:
    found, shown = _trace.candidates(view.retrieval), _trace.stages(view.retrieval)
    query = view.retrieval.query
    return {
        "retrieval": view.retrieval,
        "hits": _trace.hits(view),
        "stages": shown,
        "columns": [stage for stage in shown if stage.count],
        "candidates": found,
        "left_out": _trace.left_out(found),
        "nearest": _trace.nearest(view.retrieval, found),
        "outcome": view.empty_reason,
        "terms": view.retrieval.trace.terms if view.retrieval.trace else (),
        "cut": _lens.of_query(principal, query.text) if query.text else None,
        "degraded": [(item, explain(item)) for item in view.retrieval.degraded],
        "budget": query.max_tokens,
    }
