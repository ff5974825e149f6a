"""What the pages of vaults share: their guard, that nothing is stored, and where they go."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import cache_control
from django_htmx.http import HttpResponseClientRedirect

from engine.vault.errors import VaultError
from memory import vault_texts, vault_wiring
from memory.views._notice import Notice, remember
from memory.views._principal import StudioRequest, studio

P = ParamSpec("P")
View = Callable[Concatenate[StudioRequest, P], HttpResponseBase]


def vault_page(
    *methods: str,
) -> Callable[[View[P]], Callable[Concatenate[HttpRequest, P], HttpResponseBase]]:
    """A page of vaults: no cache keeps it, refusals are told in the reader's language.

    What needs a vault that is locked leads to where it is unlocked.
    """

    def decorate(view: View[P]) -> Callable[Concatenate[HttpRequest, P], HttpResponseBase]:
        @wraps(view)
        def told(request: StudioRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
            try:
                return view(request, *args, **kwargs)
            except VaultError as error:
                uid = kwargs.get("uid")
                if error.code == "vault_locked" and isinstance(uid, uuid.UUID):
                    return to_vault(request, uid, Notice(_("The vault is locked."), level="warn"))
                raise vault_texts.told(error) from error

        return cache_control(no_store=True)(studio(*methods)(told))

    return decorate


def missing_keeper() -> str:
    """Why no sealed vault can be used here, in the reader's language; empty when they can."""
    try:
        vault_wiring.require_keeper()
    except VaultError as error:
        return vault_texts.told(error).message
    return ""


def to_vault(request: StudioRequest, uid: uuid.UUID, notice: Notice) -> HttpResponse:
    """To the page of a vault. A notice is kept in the database: it must hold no text."""
    return go(request, reverse("vault", kwargs={"uid": uid}), notice)


def go(request: StudioRequest, address: str, notice: Notice) -> HttpResponse:
    """To another page, which shows a notice."""
    remember(request, notice)
    if request.htmx:
        return HttpResponseClientRedirect(address)
    return HttpResponseRedirect(address, status=303)
