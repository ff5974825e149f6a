"""The tab Memories: the list, the peek panel, and what a change re-renders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from django.http import HttpResponse
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy, pgettext_lazy

from memory.errors import NotFound
from memory.forms import MemoryForm, RowForm, memory_form
from memory.models import Job
from memory.services import jobrows, listing, memories
from memory.services.listing import MemoryRow
from memory.templatetags.studio import EXPORT_FORMATS, TYPES
from memory.views._list_state import SIZES, STATES, ListState, list_params, list_state
from memory.views._notice import Notice
from memory.views._principal import StudioRequest, studio
from memory.views._render import render_page

TEMPLATE: Final = "memory/memories.html"
PARTIALS: Final = {"memories-main": "main", "memories-peek": "peek"}
ROW: Final = "memory-"
"""Rows have the id of their memory after this."""
SIMILAR_LENGTH: Final = 300


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the table. ``sort`` is the order its heading leads to; empty: not sortable."""

    name: str
    label: Promise
    css: str
    sort: str = ""
    direction: str = ""


@dataclass(frozen=True, slots=True)
class TypeChoice:
    """One type in the filter, with how many live memories it has."""

    value: str
    label: Promise
    count: int


@studio("GET")
def index(request: StudioRequest) -> HttpResponse:
    """The list, or the part of it that htmx asked for."""
    params = list_params(request)
    state = list_state(request, params)
    if request.htmx and request.htmx.target == "memories-peek":
        context = {"params": params, "state": state, "peek": peek(request, state)}
    else:
        context = list_context(request, full=not request.htmx or "refresh" in request.GET)
    return render_page(request, TEMPLATE, context, partials=PARTIALS)


def list_context(request: StudioRequest, *, full: bool = True) -> dict[str, Any]:
    """What the list shows; ``full`` adds the figures, the filters' choices and the card."""
    params = list_params(request)
    state = list_state(request, params)
    page = listing.list_page(request.principal, state.filter())
    context: dict[str, Any] = {
        "params": params,
        "state": state,
        "page": page,
        "last": state.last(page),
        "sizes": SIZES,
        "many_owners": not state.owner,
        "columns": columns(state),
        "peek": peek(request, state),
        "edit_form": edit_form(page.rows, state),
    }
    if full:
        stats = listing.stats(request.principal, state.owner or None)
        context |= {
            "stats": stats,
            "sessions": listing.sessions(request.principal, state.owner or None),
            "types": [TypeChoice(k, v, stats.by_type.get(k, 0)) for k, v in TYPES.items()],
            "states": STATES,
            "exports": EXPORT_FORMATS.items(),
            "running": running(request),
            "how_folded": request.COOKIES.get("how") == "folded",
        }
    return context


def running(request: StudioRequest) -> list[Job]:
    """Jobs that change the list and are at work now."""
    active = jobrows.active(request.principal)
    return [job for job in active if job.kind in ("import", "compact")]


def changed(
    request: StudioRequest, notice: Notice, *, overrides: dict[str, Any] | None = None
) -> HttpResponse:
    """The list, the figures and a notice after a change; a form that is done is closed."""
    context = list_context(request) | {"notice": notice, "with_notices": True} | (overrides or {})
    target = request.htmx.target or ""
    if _takes_away(target, context):
        return render_page(request, TEMPLATE, context, partials={target: "around"})
    response = render_page(request, TEMPLATE, context, partials={target: "main"})
    response["HX-Retarget"] = "#memories-main"
    response["HX-Reswap"] = "outerHTML"
    return response


def _takes_away(target: str, context: dict[str, Any]) -> bool:
    """Whether only the row that was acted on goes; then others may be acted on meanwhile."""
    state: ListState = context["state"]
    return target.startswith(ROW) and target != f"{ROW}{state.open}" and bool(context["page"].rows)


def peek(
    request: StudioRequest, state: ListState, form: MemoryForm | None = None
) -> dict[str, Any] | None:
    """The panel of the open row; None when there is none (any more)."""
    if state.open is None:
        return None
    try:
        row = listing.row(request.principal, state.open)
    except NotFound:
        return None
    query = row.memory.content[:SIMILAR_LENGTH]
    owner = str(row.memory.api_key.uid)
    similar = urlencode({"q": query, "mode": "vector", "owner": owner})
    why = urlencode({"memory": str(row.memory.pk), "owner": owner})
    return {
        "row": row,
        "form": form or memory_form(row.memory),
        "history": memories.history(request.principal, row.memory.pk),
        "similar_url": f"{reverse('playground')}?{similar}",
        "why_url": f"{reverse('playground')}?{why}",
    }


def edit_form(rows: list[MemoryRow], state: ListState) -> RowForm | None:
    """The form of the row that is edited in place, if it is on this page."""
    for row in rows:
        memory = row.memory
        if memory.pk == state.edit and memory.trashed_at is None and memory.archived_at is None:
            return RowForm(initial={"content": memory.content, "type": memory.type})
    return None


def columns(state: ListState) -> list[Column]:
    """The table's columns with the order each heading leads to."""
    plain = [
        ("key", gettext_lazy("Key"), "c-key", "key"),
        ("content", gettext_lazy("Content"), "c-content", ""),
        ("type", gettext_lazy("Type"), "c-type", "type"),
        ("owner", gettext_lazy("Owner"), "c-owner", ""),
        ("tokens", gettext_lazy("Tokens"), "c-num", "-tokens"),
        ("index", gettext_lazy("Index"), "c-index", ""),
        ("age", pgettext_lazy("how long ago", "Age"), "c-age", "-created"),
    ]
    if state.owner:
        del plain[3]
    return [_column(state, *entry) for entry in plain]


def _column(state: ListState, name: str, label: Promise, css: str, first: str) -> Column:
    field = first.removeprefix("-")
    if not field or state.sort.removeprefix("-") != field:
        return Column(name, label, css, first)
    turned = field if state.sort.startswith("-") else f"-{field}"
    return Column(name, label, css, turned, _direction(state.sort))


def _direction(sort: str) -> str:
    return "descending" if sort.startswith("-") else "ascending"
