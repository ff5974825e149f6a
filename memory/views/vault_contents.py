"""One vault in the studio: what lies in it, searching it, and reading a document."""

from __future__ import annotations

import uuid
from typing import Any, Final

from django.http import HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _

from engine.errors import InvalidQuery
from engine.vault.errors import VaultError
from memory import vault_texts
from memory.errors import NotFound, ServiceError, from_engine
from memory.models import Vault, VaultAsset
from memory.services.vaults import assets, lifecycle, overview, reading, searching
from memory.vault_content_forms import AssetForm, NewAssetForm, SearchForm, asset_form
from memory.vault_forms import UnlockForm
from memory.views._notice import Notice, Undo
from memory.views._principal import StudioRequest
from memory.views._render import render_page, sent
from memory.views._vaults import go, missing_keeper, to_vault, vault_page
from memory.views.vaults import refuse

ONE: Final = "memory/vault.html"
READER: Final = "memory/vault_asset.html"
EDIT: Final = "memory/vault_edit.html"
DIALOG: Final = {"dialog": "form"}
PARTIALS: Final = {"vault-main": "main"}
SHOWN: Final = 50


@vault_page("GET")
def show(request: StudioRequest, uid: uuid.UUID) -> HttpResponse:
    """What lies in a vault; for one that is locked, what opens it."""
    vault = lifecycle.get(request.principal, str(uid))
    return _page(request, vault, _listed(request, vault))


@vault_page("GET", "POST")
def search(request: StudioRequest, uid: uuid.UUID) -> HttpResponse:
    """Search a vault. Only by POST, so that no address holds the query."""
    if request.method == "GET":
        return HttpResponseRedirect(reverse("vault", args=[uid]))
    vault = lifecycle.get(request.principal, str(uid))
    form, view = SearchForm(request.POST, auto_id="vault-%s"), None
    if form.is_valid():
        try:
            view = searching.find(request.principal, form.asked(str(uid)))
        except InvalidQuery as error:
            form.absorb(from_engine(error))
        except VaultError as error:
            if error.code == "vault_locked":
                raise
            form.absorb(vault_texts.told(error))
    context = {"form": form, "result": view, "hits": scored(view) if view else []}
    status = form.status if form.errors else 200
    return _page(request, vault, context, status=status)


@vault_page("POST")
def prepare(request: StudioRequest, uid: uuid.UUID) -> HttpResponse:
    """Build the index with its vectors now."""
    done = searching.prepare(request.principal, str(uid))
    text = _("The index is ready: %(chunks)s chunks, %(made)s new vectors.")
    figures = {"chunks": done.chunks, "made": done.made}
    return to_vault(request, uid, Notice(text % figures))


@vault_page("GET", "POST")
def add(request: StudioRequest, uid: uuid.UUID) -> HttpResponse:
    """Put a card, a memory or something that is never searched into a vault."""
    vault = lifecycle.get(request.principal, str(uid))
    form = NewAssetForm(sent(request), auto_id="asset-%s")
    if request.method == "POST" and form.is_valid():
        try:
            assets.put(request.principal, str(uid), form.draft())
            return to_vault(request, uid, Notice(_("It is in the vault.")))
        except (ServiceError, VaultError) as error:
            refuse(form, error)
    status = form.status if form.is_bound else 200
    context = {"vault": vault, "form": form}
    return render_page(request, EDIT, context, partials=DIALOG, status=status)


@vault_page("GET")
def read(request: StudioRequest, uid: uuid.UUID, asset: uuid.UUID) -> HttpResponse:
    """A document, as it is or at a revision, with a chunk marked by its byte offsets."""
    vault = lifecycle.get(request.principal, str(uid))
    revision, at = _number(request, "revision"), _number(request, "at")
    first, last = _number(request, "from"), _number(request, "to")
    mark = None if first is None or last is None else (first, last)
    stored, shown = assets.read(request.principal, str(uid), str(asset), revision)
    context = {
        "vault": vault,
        "asset": stored.asset,
        "content": stored.content,
        "shown": shown,
        "written": getattr(shown, "written_at", None) or stored.asset.updated_at,
        "is_current": shown.revision == stored.asset.revision,
        "is_searched": stored.asset.kind in VaultAsset.SEARCHABLE,
        "part": reading.part(stored.content.body, at=at or 0, mark=mark),
        "shown_from": first,
        "shown_to": last,
        "revisions": assets.revisions(request.principal, str(uid), str(asset)),
    }
    return render_page(request, READER, context, partials={"vault-source": "source"})


@vault_page("GET", "POST")
def edit(request: StudioRequest, uid: uuid.UUID, asset: uuid.UUID) -> HttpResponse:
    """Change a document; what it was stays as a revision."""
    vault = lifecycle.get(request.principal, str(uid))
    stored, _shown = assets.read(request.principal, str(uid), str(asset))
    form = asset_form(stored)
    if request.method == "POST":
        form = AssetForm(request.POST, auto_id="asset-%s")
        if form.is_valid():
            try:
                _revise(request, uid, asset, form)
                address = reverse("vault-asset", args=[uid, asset])
                return go(request, address, Notice(_("Saved as a new revision.")))
            except (ServiceError, VaultError) as error:
                refuse(form, error)
                if error.code == "stale":
                    form.may_replace(stored.asset.revision)
    status = form.status if form.is_bound else 200
    context = {"vault": vault, "form": form, "asset": stored.asset}
    return render_page(request, EDIT, context, partials=DIALOG, status=status)


def _revise(request: StudioRequest, uid: uuid.UUID, asset: uuid.UUID, form: AssetForm) -> None:
    expected = form.cleaned_data["revision"]
    assets.revise(
        request.principal, str(uid), str(asset), form.changes(), expected_revision=expected
    )


@vault_page("POST")
def delete(request: StudioRequest, uid: uuid.UUID, asset: uuid.UUID) -> HttpResponse:
    """Put a document in the trash."""
    assets.delete(request.principal, str(uid), str(asset))
    undo = Undo(reverse("vault-restore", args=[uid, asset]))
    text = _("Deleted. It is out of the index now, and erased after 30 days.")
    return to_vault(request, uid, Notice(text, undo=undo))


@vault_page("POST")
def restore(request: StudioRequest, uid: uuid.UUID, asset: uuid.UUID) -> HttpResponse:
    """Bring a document back from the trash."""
    assets.restore(request.principal, str(uid), str(asset))
    return to_vault(request, uid, Notice(_("It is back in the vault.")))


def scored(view: searching.SearchView) -> list[dict[str, Any]]:
    """The hits with the scores that they have, each beside the best of its kind."""
    kinds = (
        ("keyword", _("keyword"), "bm25", 3),
        ("vector", _("vector"), "vector", 3),
        ("", _("fused"), "rrf", 4),
        ("", _("rerank"), "rerank", 3),
    )
    best = {
        name: max((getattr(item, name) or 0.0 for item in view.found), default=0.0)
        for _kind, _label, name, _digits in kinds
    }
    return [
        {
            "found": item,
            "scores": [
                {"kind": kind, "label": label, "value": value, "best": best[name], "digits": digits}
                for kind, label, name, digits in kinds
                if (value := getattr(item, name)) is not None
            ],
        }
        for item in view.found
    ]


def _page(
    request: StudioRequest, vault: Vault, context: dict[str, Any], *, status: int = 200
) -> HttpResponse:
    found = searching.status(request.principal, str(vault.uid))
    frame = {
        "vault": found.vault,
        "glance": overview.glance(found.vault, found.assets, found.figures),
        "status": found,
        "limits": found.limits,
        "form": SearchForm(auto_id="vault-%s"),
        "unlock_form": UnlockForm(auto_id="unlock-%s"),
        "missing_keeper": missing_keeper(),
    }
    return render_page(request, ONE, frame | context, partials=PARTIALS, status=status)


def _listed(request: StudioRequest, vault: Vault) -> dict[str, Any]:
    if not lifecycle.is_unlocked(vault):
        return {}
    kind = request.GET.get("kind", "")
    kind = kind if kind in VaultAsset.Kind.values else ""
    page = max(1, _number(request, "page") or 1)
    first = (page - 1) * SHOWN
    found = assets.list_page(
        request.principal, str(vault.uid), kind=kind, limit=SHOWN, offset=first
    )
    return {
        "page": found,
        "kind": kind,
        "kinds": VaultAsset.Kind.values,
        "first": first + 1,
        "last": first + len(found.rows),
        "previous": page - 1 if page > 1 else None,
        "next": page + 1 if first + len(found.rows) < found.total else None,
    }


def _number(request: StudioRequest, name: str) -> int | None:
    text = request.GET.get(name, "")
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise NotFound(_("There is no such place."))
    return int(text)
