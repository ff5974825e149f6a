"""Writes of the tab Memories: add, edit, bulk actions with undo, restore an earlier text."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from django.http import HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from memory.errors import Conflict, Invalid, NotFound, ServiceError
from memory.forms import MemoryForm, NewMemoryForm, RowForm
from memory.models import Memory
from memory.principal import Principal
from memory.services import access, listing, memories
from memory.views._list_state import list_params, list_state
from memory.views._notice import Level, Notice, Undo
from memory.views._principal import StudioRequest, studio
from memory.views._render import after_change, current_owner, owners, render_page, sent
from memory.views.memories import PARTIALS, TEMPLATE, changed, list_context, peek

MAX_BULK: Final = 500
DIALOG: Final = {"dialog": "form"}


@studio("GET", "POST")
def add(request: StudioRequest) -> HttpResponse:
    """The form for a new memory; a key that exists already is updated, and the notice says so."""
    choices = owners(request)
    initial = {"owner": current_owner(request) or str(access.default_key().uid)}
    form = NewMemoryForm(sent(request), owners=choices, initial=initial, auto_id="new-%s")
    if request.method == "POST" and form.is_valid():
        try:
            owner = form.cleaned_data["owner"]
            memory, is_new = memories.create(request.principal, form.draft(), owner=owner)
            return after_change(request, _added(memory, is_new), fragment=_close(request))
        except (Invalid, Conflict) as error:
            form.absorb(error)
    status = form.status if form.is_bound else 200
    return render_page(request, "memory/add.html", {"form": form}, partials=DIALOG, status=status)


@studio("POST")
def edit(request: StudioRequest, memory_id: uuid.UUID) -> HttpResponse:
    """Save every field of the peek panel."""
    form = MemoryForm(request.POST, auto_id="edit-%s")
    if form.is_valid():
        try:
            notice = _save(request, memory_id, form, form.changes())
            return after_change(request, notice, fragment=lambda n: changed(request, n))
        except (Invalid, Conflict) as error:
            _refuse(request, memory_id, form, error)
    params = list_params(request)
    state = replace(list_state(request, params), open=memory_id, edit=None)
    panel = peek(request, state, form)
    if panel is None:
        raise NotFound(_("No such memory."))
    context = list_context(request, full=not request.htmx) | {"state": state, "peek": panel}
    return render_page(request, TEMPLATE, context, partials=PARTIALS, status=form.status)


@studio("POST")
def edit_row(request: StudioRequest, memory_id: uuid.UUID) -> HttpResponse:
    """Save content and type from inside the table row."""
    form = RowForm(request.POST)
    if form.is_valid():
        try:
            fields = {name: form.cleaned_data[name] for name in ("content", "type")}
            notice = _save(request, memory_id, form, fields)
            done = {"edit_form": None}
            return after_change(
                request, notice, fragment=lambda n: changed(request, n, overrides=done)
            )
        except (Invalid, Conflict) as error:
            _refuse(request, memory_id, form, error)
    state = replace(list_state(request, list_params(request)), edit=memory_id)
    context = list_context(request, full=not request.htmx) | {"state": state, "edit_form": form}
    return render_page(request, TEMPLATE, context, partials=PARTIALS, status=form.status)


@studio("POST")
def revert(request: StudioRequest, memory_id: uuid.UUID, revision: int) -> HttpResponse:
    """Make a memory what it was; itself a change, so the notice can undo it."""
    before = listing.row(request.principal, memory_id).memory.revision
    memory = memories.revert(request.principal, memory_id, revision)
    text = _("Version %(number)s is back.") % {"number": revision}
    notice = Notice(text, undo=_undo_edit(memory, before))
    return after_change(request, notice, fragment=lambda n: changed(request, n))


@studio("POST")
def bulk(request: StudioRequest) -> HttpResponse:
    """One action on the picked rows, or on the row whose own button was pressed."""
    action, ids = _picked(request)
    if action not in ACTIONS:
        raise Invalid(_("There is no such action."))
    if not ids:
        notice = Notice(_("Nothing is selected."), level="warn")
        return after_change(request, notice, fragment=lambda n: changed(request, n))
    done, refused = _each(request.principal, ids, ACTIONS[action])
    return after_change(
        request, _told(action, done, refused), fragment=lambda n: changed(request, n)
    )


Act = Callable[[Principal, str], object]


def _pin(value: bool) -> Act:
    return lambda principal, pk: memories.update(principal, pk, {"is_pinned": value})


ACTIONS: Final[dict[str, Act]] = {
    "delete": memories.delete,
    "purge": lambda principal, pk: memories.delete(principal, pk, purge=True),
    "restore": memories.restore,
    "pin": _pin(True),
    "unpin": _pin(False),
}
UNDO: Final = {"delete": "restore", "restore": "delete", "pin": "unpin", "unpin": "pin"}


def _picked(request: StudioRequest) -> tuple[str, list[str]]:
    for action in ("delete", "restore"):
        if request.POST.get(action):
            return action, [request.POST[action]]
    return request.POST.get("action", ""), request.POST.getlist("ids")[:MAX_BULK]


def _each(principal: Principal, ids: list[str], act: Act) -> tuple[list[str], list[str]]:
    done: list[str] = []
    refused: list[str] = []
    for memory_id in ids:
        try:
            act(principal, memory_id)
            done.append(memory_id)
        except ServiceError as error:
            refused.append(error.message)
    return done, refused


def _told(action: str, done: list[str], refused: list[str]) -> Notice:
    count = len(done)
    texts = {
        "delete": ngettext("%(n)s memory deleted.", "%(n)s memories deleted.", count),
        "purge": ngettext(
            "%(n)s memory erased for ever.", "%(n)s memories erased for ever.", count
        ),
        "restore": ngettext("%(n)s memory restored.", "%(n)s memories restored.", count),
        "pin": ngettext("%(n)s memory pinned.", "%(n)s memories pinned.", count),
        "unpin": ngettext("%(n)s memory unpinned.", "%(n)s memories unpinned.", count),
    }
    undo = Undo.of(reverse("memories-bulk"), UNDO[action], done) if action in UNDO else None
    text = texts[action] % {"n": count}
    if refused:
        left = ngettext(
            "%(n)s was left alone: %(why)s", "%(n)s were left alone: %(why)s", len(refused)
        )
        text = f"{text} {left % {'n': len(refused), 'why': refused[0]}}"
    level: Level = "bad" if not done else "warn" if refused else "ok"
    return Notice(text, level=level, undo=undo if done else None)


def _save(
    request: StudioRequest,
    memory_id: uuid.UUID,
    form: MemoryForm | RowForm,
    changes: dict[str, object],
) -> Notice:
    before = listing.row(request.principal, memory_id).memory.revision
    expected = form.cleaned_data["revision"]
    memory = memories.update(request.principal, memory_id, changes, expected_revision=expected)
    return Notice(_("Memory saved."), undo=_undo_edit(memory, before))


def _refuse(
    request: StudioRequest,
    memory_id: uuid.UUID,
    form: MemoryForm | RowForm,
    error: ServiceError,
) -> None:
    """Show a refusal; after a stale one the next save is meant, so it may replace the row."""
    form.absorb(error)
    if error.code != "stale":
        return
    current = listing.row(request.principal, memory_id).memory.revision
    form.data = {**dict(form.data.items()), "revision": str(current)}
    form.add_error(None, _("Save again to replace that text with yours."))


def _undo_edit(memory: Memory, before: int) -> Undo | None:
    if memory.revision == before:
        return None
    return Undo(reverse("memory-revert", args=[memory.pk, before]))


def _added(memory: Memory, is_new: bool) -> Notice:
    if is_new:
        undo = Undo.of(reverse("memories-bulk"), "delete", [memory.pk])
        return Notice(_("Memory added."), undo=undo)
    text = _("A memory with the key “%(key)s” existed already; it was updated.")
    undo_edit = _undo_edit(memory, memory.revision - 1) if memory.revision > 1 else None
    return Notice(text % {"key": memory.key}, undo=undo_edit)


def _close(request: StudioRequest) -> Callable[[Notice], HttpResponse]:
    def answer(notice: Notice) -> HttpResponse:
        response = changed(request, notice)
        response["HX-Trigger"] = "dialog-close"
        return response

    return answer
