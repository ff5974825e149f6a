"""API keys in the studio: made with their secret shown once, renewed, revoked."""

from __future__ import annotations

import uuid
from typing import Final

from django.http import HttpResponse
from django.utils.translation import gettext as _

from memory.access_forms import KeyForm
from memory.errors import Conflict, Invalid
from memory.models import ApiKey
from memory.services import keys
from memory.views._notice import Notice
from memory.views._principal import StudioRequest, studio
from memory.views._render import after_change, render_page, sent
from memory.views.engine import changed

DIALOG: Final = {"dialog": "form"}


@studio("GET", "POST")
def add(request: StudioRequest) -> HttpResponse:
    """The form for a new key; the answer shows the secret, which is never shown again."""
    form = KeyForm(sent(request), auto_id="key-%s")
    if request.method == "POST" and form.is_valid():
        values = form.cleaned_data
        try:
            key, secret = keys.create(
                request.principal,
                values["name"],
                scopes=values["scopes"],
                expires_at=values["expires_at"],
            )
            return _shown_once(request, key, secret)
        except (Invalid, Conflict) as error:
            form.absorb(error)
    status = form.status if form.is_bound else 200
    return render_page(
        request, "memory/key_add.html", {"form": form}, partials=DIALOG, status=status
    )


@studio("POST")
def rotate(request: StudioRequest, uid: uuid.UUID) -> HttpResponse:
    """Give a key a new secret, shown once; a revoked key works again."""
    return _shown_once(request, *keys.rotate(request.principal, str(uid)))


def _shown_once(request: StudioRequest, key: ApiKey, secret: str) -> HttpResponse:
    context = {"key": key, "secret": secret}
    response = render_page(request, "memory/key_add.html", context, partials=DIALOG)
    response["HX-Trigger"] = "keys-changed"
    response["Cache-Control"] = "no-store"
    return response


@studio("POST")
def revoke(request: StudioRequest, uid: uuid.UUID) -> HttpResponse:
    """Make a key's secret useless; its memories stay."""
    key = keys.revoke(request.principal, str(uid))
    text = _("The key “%(name)s” is revoked. Its memories stay.") % {"name": key.name}
    return after_change(
        request,
        Notice(text),
        fragment=lambda n: changed(request, n, "engine-keys"),
        page="engine",
    )
