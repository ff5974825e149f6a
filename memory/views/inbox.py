"""The tab Inbox: facts that wait for somebody; accept, change, reject, and take back."""

from __future__ import annotations

import uuid
from typing import Any, Final
from urllib.parse import urlsplit

from django.http import HttpResponse, QueryDict
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from memory.errors import Conflict, Invalid, ServiceError
from memory.extraction_forms import ItemForm
from memory.models import InboxItem
from memory.services.extraction import inbox
from memory.services.extraction.inbox import Decision, InboxFilter
from memory.templatetags.extraction import CATEGORIES, REASONS, STATES
from memory.views._notice import Level, Notice, Undo
from memory.views._principal import StudioRequest, studio
from memory.views._render import after_change, current_owner, render_page

TEMPLATE: Final = "memory/inbox.html"
PARTIALS: Final = {"inbox-main": "main"}
SHOWN: Final = 50
KEPT: Final = ("state", "category", "reason", "page", "edit")
UNDONE: Final = frozenset({"accept", "reject"})


@studio("GET")
def index(request: StudioRequest) -> HttpResponse:
    """The list, or the part of it that htmx asked for."""
    return render_page(request, TEMPLATE, _context(request), partials=PARTIALS)


@studio("POST")
def decide(request: StudioRequest) -> HttpResponse:
    """One decision about one item, or about all that are selected."""
    action, ids = _asked(request.POST)
    answers = inbox.decide_many(request.principal, ids, Decision(action))
    done = [item_id for item_id, answer in answers if isinstance(answer, InboxItem)]
    refused = [answer.message for _id, answer in answers if isinstance(answer, ServiceError)]
    return _answer(request, _notice(action, done, refused))


@studio("POST")
def accept(request: StudioRequest, item_id: uuid.UUID) -> HttpResponse:
    """Accept an item with the text that was typed."""
    form = ItemForm(request.POST)
    if form.is_valid():
        values = form.cleaned_data
        decision = Decision("accept", values["content"], values["type"], values["revision"])
        try:
            inbox.decide(request.principal, item_id, decision)
            return _answer(request, _notice("accept", [str(item_id)], []))
        except (Invalid, Conflict) as error:
            form.absorb(error)
    context = _context(request) | {"edited": str(item_id), "edit_form": form}
    return render_page(request, TEMPLATE, context, partials=PARTIALS, status=form.status)


def _asked(sent: QueryDict) -> tuple[str, list[str]]:
    """A button of a row names its item; the others act on what is selected."""
    for action in ("accept", "reject", "reopen"):
        if item_id := sent.get(action):
            return action, [item_id]
    return sent.get("action", ""), sent.getlist("ids")


def _context(request: StudioRequest) -> dict[str, Any]:
    params = _params(request)
    wanted = InboxFilter(
        owner=current_owner(request) or None,
        state=_known(params.get("state", ""), STATES, "pending"),
        category=_known(params.get("category", ""), CATEGORIES, ""),
        reason=_known(params.get("reason", ""), REASONS, ""),
        limit=SHOWN,
        page=_number(params.get("page", "")),
    )
    page = inbox.list_page(request.principal, wanted)
    edited = next((row for row in page.rows if str(row.pk) == params.get("edit")), None)
    return {
        "params": params,
        "wanted": wanted,
        "page": page,
        "many_owners": not wanted.owner,
        "first": (page.page - 1) * page.limit + 1,
        "last": (page.page - 1) * page.limit + len(page.rows),
        "categories": CATEGORIES.items(),
        "reasons": REASONS.items(),
        "states": STATES.items(),
        "edited": str(edited.pk) if edited else "",
        "edit_form": _form(edited) if edited else None,
    }


def _form(item: InboxItem) -> ItemForm:
    values = {"content": item.content, "type": item.type, "revision": item.revision}
    return ItemForm(initial=values)


def _params(request: StudioRequest) -> QueryDict:
    """The parameters in the address bar: of this request, or of htmx's page."""
    source = request.GET
    if request.method != "GET":
        address = request.htmx.current_url_abs_path if request.htmx else ""
        source = QueryDict(urlsplit(address or "").query)
    params = QueryDict(mutable=True)
    for name in KEPT:
        if source.get(name):
            params[name] = source[name]
    return params


def _known(value: str, known: Any, default: str) -> str:
    return value if value in known else default


def _number(value: str) -> int:
    return int(value) if value.isascii() and value.isdecimal() and 0 < int(value) < 10**6 else 1


def _answer(request: StudioRequest, notice: Notice) -> HttpResponse:
    return after_change(request, notice, fragment=lambda n: _changed(request, n), page="inbox")


def _changed(request: StudioRequest, notice: Notice) -> HttpResponse:
    """The list, the figures and a notice after a decision; a form that is done is closed."""
    context = _context(request) | {"notice": notice, "with_notices": True, "edited": ""}
    target = request.htmx.target or ""
    response = render_page(request, TEMPLATE, context, partials={target: "main"})
    response["HX-Retarget"] = "#inbox-main"
    response["HX-Reswap"] = "outerHTML"
    return response


def _notice(action: str, done: list[str], refused: list[str]) -> Notice:
    count = len(done)
    texts = {
        "accept": ngettext("Accepted: now a memory.", "%(n)s accepted: now memories.", count),
        "reject": ngettext("Rejected.", "%(n)s rejected.", count),
        "reopen": ngettext("Waiting again.", "%(n)s are waiting again.", count),
    }
    text = texts.get(action, "") % {"n": count} if done else ""
    if refused:
        text = " ".join(filter(None, [text, refused[0]]))
    if not text:
        text = _("Nothing was selected.")
    undo = Undo.of(reverse("inbox-decide"), "reopen", done) if action in UNDONE and done else None
    level: Level = "bad" if not done else "warn" if refused else "ok"
    return Notice(text, level=level, undo=undo)
