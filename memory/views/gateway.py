"""Chats in the studio: settings, what memory costs each key, receipts, and a preview."""

from __future__ import annotations

import uuid
from typing import Any, Final

from django.http import HttpResponse
from django.utils.translation import gettext as _

from engine.chat.bodies import Body, Protocol
from memory.errors import Conflict, Invalid
from memory.gateway_forms import ChatSettingsForm, PreviewForm, chat_settings_form, key_form
from memory.services import access
from memory.services import settings as studio_settings
from memory.services.gateway import meter, previewing, settings, traces
from memory.services.gateway.meter import Spent
from memory.services.gateway.previewing import PreviewAsk
from memory.services.gateway.traces import TraceFilter
from memory.views._notice import Notice
from memory.views._principal import StudioRequest, studio
from memory.views._render import after_change, current_owner, render_page

PAGE: Final = "memory/gateway.html"
RECEIPTS: Final = "memory/receipts.html"
RECEIPT: Final = "memory/receipt.html"
REQUEST: Final = "memory/request.html"
PARTIALS: Final = {"gateway-settings": "settings", "gateway-keys": "keys"}
SHOWN: Final = 50


@studio("GET")
def index(request: StudioRequest) -> HttpResponse:
    """Settings of chats, and what memory costs each key."""
    return render_page(request, PAGE, _context(request), partials=PARTIALS)


@studio("POST")
def save(request: StudioRequest) -> HttpResponse:
    """Change the settings of chats."""
    form = ChatSettingsForm(request.POST, auto_id="chat-%s")
    if form.is_valid():
        try:
            settings.update(request.principal, form.changes())
            return _saved(request, Notice(_("Settings saved.")))
        except (Invalid, Conflict) as error:
            form.absorb(error)
    context = _context(request) | {"form": form}
    return render_page(request, PAGE, context, partials=PARTIALS, status=form.status)


@studio("POST")
def save_key(request: StudioRequest, uid: uuid.UUID) -> HttpResponse:
    """Say whether the chats of a key are given memories, and what these may cost in a day."""
    key = access.find(str(uid))
    form = key_form(key, request.POST)
    if form.is_valid():
        try:
            meter.change_key(request.principal, str(uid), **form.cleaned_data)
            text = _("Saved for the key “%(name)s”.") % {"name": key.name}
            return _saved(request, Notice(text))
        except Invalid as error:
            form.absorb(error)
    context = _context(request)
    context["rows"] = [
        (spent, form if spent.key.pk == key.pk else own) for spent, own in context["rows"]
    ]
    return render_page(request, PAGE, context, partials=PARTIALS, status=form.status)


@studio("GET")
def receipts(request: StudioRequest) -> HttpResponse:
    """Receipts, newest first."""
    state, page = request.GET.get("memory", ""), request.GET.get("page", "1")
    wanted = TraceFilter(
        owner=current_owner(request) or None,
        memory=state if state in traces.STATES else "",
        limit=SHOWN,
        page=int(page) if page.isascii() and page.isdecimal() and 0 < int(page) < 10**6 else 1,
    )
    found = traces.list_page(request.principal, wanted)
    context = {"page": found, "state": wanted.memory, "states": traces.STATES}
    return render_page(request, RECEIPTS, context)


@studio("GET")
def receipt(request: StudioRequest, trace_id: uuid.UUID) -> HttpResponse:
    """One receipt."""
    view = traces.get(request.principal, trace_id)
    trace = view.trace
    context = {
        "trace": trace,
        "retrieved": [
            {**hit, "memory": view.memories.get(hit["id"]), "is_in": hit["id"] in trace.injected}
            for hit in trace.retrieved
        ],
        "learnt": [{"id": one, "memory": view.memories.get(one)} for one in trace.learnt],
        "longest": max(trace.durations.values(), default=0.0),
    }
    return render_page(request, RECEIPT, context)


@studio("GET")
def preview(request: StudioRequest) -> HttpResponse:
    """The request that would be sent for a query of the Playground."""
    form = PreviewForm(request.GET, auto_id="request-%s")
    context: dict[str, Any] = {"form": form, "preview": None}
    if form.is_valid():
        values = form.cleaned_data
        ask = PreviewAsk(
            body=_body(values["protocol"], values["model"], values["q"]),
            protocol=Protocol(values["protocol"]),
            owner=current_owner(request) or None,
            headers={"x-session-id": values["session"]},
            is_on=True,
        )
        try:
            context["preview"] = previewing.preview(request.principal, ask)
        except Invalid as error:
            form.absorb(error)
    context["is_off"] = not studio_settings.get().enabled
    status = form.status if form.errors else 200
    partials = {"playground-request": "request"}
    return render_page(request, REQUEST, context, partials=partials, status=status)


def _context(request: StudioRequest) -> dict[str, Any]:
    figures: list[Spent] = meter.figures(request.principal)
    return {
        "form": chat_settings_form(settings.get()),
        "memory": studio_settings.get(),
        "rows": [(spent, key_form(spent.key)) for spent in figures],
    }


def _saved(request: StudioRequest, notice: Notice) -> HttpResponse:
    return after_change(
        request,
        notice,
        fragment=lambda told: render_page(
            request,
            PAGE,
            _context(request) | {"notice": told, "with_notices": True},
            partials=PARTIALS,
        ),
        page="gateway",
    )


def _body(protocol: str, model: str, text: str) -> Body:
    name: Body = {"model": model or "model"}
    if protocol == "responses":
        return {**name, "input": text}
    messages: Body = {"messages": [{"role": "user", "content": text}]}
    limit: Body = {"max_tokens": 1024} if protocol == "messages" else {}
    return {**name, **limit, **messages}
