"""Page or partial: the server maps the htmx target to a partial from the view's allow-list."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.utils.cache import patch_vary_headers
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import get_language, get_language_info

from memory import remembered
from memory.models import ApiKey
from memory.services import access
from memory.templatetags.studio import chosen_theme
from memory.views._notice import Notice, recall, remember
from memory.views._principal import StudioRequest

HEALTH_CACHE = "studio.health"
Context = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Language:
    """One choice of the language switch, named in itself."""

    code: str
    name: str
    is_current: bool


@dataclass(frozen=True, slots=True)
class Shell:
    """What every page's frame shows."""

    tab: str
    owners: list[ApiKey]
    owner: str
    here: str
    keys: bool
    theme: str
    languages: list[Language]
    health: Any

    @property
    def theme_auto(self) -> str:
        """``true`` when the system chooses the theme."""
        return "true" if self.theme == "auto" else "false"

    @property
    def theme_light(self) -> str:
        """``true`` when the light theme is chosen."""
        return "true" if self.theme == "light" else "false"

    @property
    def theme_dark(self) -> str:
        """``true`` when the dark theme is chosen."""
        return "true" if self.theme == "dark" else "false"


def render_page(
    request: StudioRequest,
    template: str,
    context: Context,
    *,
    partials: Mapping[str, str] | None = None,
    status: int = 200,
) -> HttpResponse:
    """The whole page, or the one partial that the htmx target names in ``partials``.

    Plain, boosted and history-restore requests get the page, as does an unknown target.
    """
    partial = partial_of(request, partials or {})
    if partial:
        values = {"shell": shell(request, template), "oob": True, **context}
        response = render(request, f"{template}#{partial}", values, status=status)
    else:
        values = {"shell": shell(request, template), "notice": recall(request), **context}
        response = render(request, template, values, status=status)
    patch_vary_headers(response, ("HX-Request", "HX-Target"))
    return response


def partial_of(request: StudioRequest, partials: Mapping[str, str]) -> str:
    """The partial that answers this request, or an empty text for the page."""
    htmx = request.htmx
    if not htmx or htmx.boosted or htmx.history_restore_request:
        return ""
    return partials.get(htmx.target or "", "")


def after_change(
    request: StudioRequest,
    notice: Notice,
    *,
    fragment: Callable[[Notice], HttpResponse],
    page: str = "memories",
) -> HttpResponse:
    """After a write: the changed regions for htmx, a redirect that shows the notice otherwise."""
    if request.htmx:
        return fragment(notice)
    remember(request, notice)
    return HttpResponseRedirect(next_url(request, reverse(page)), status=303)


def next_url(request: StudioRequest, default: str) -> str:
    """Where a form asked to go afterwards, if that is a place on this server."""
    wanted = request.POST.get("next", "")
    if wanted.startswith("?"):
        wanted = default + wanted
    is_here = url_has_allowed_host_and_scheme(
        wanted, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return wanted if wanted and is_here else default


def sent(request: HttpRequest) -> QueryDict | None:
    """The fields of a form that was sent; None when the form is only being shown."""
    return request.POST if request.method == "POST" else None


def current_owner(request: StudioRequest) -> str:
    """Public id of the chosen API key; empty for all. The address wins and is remembered."""
    if "owner" in request.GET:
        chosen = request.GET["owner"]
        known = {str(key.uid) for key in owners(request)}
        request.session["owner"] = chosen if chosen in known else ""
    return str(request.session.get("owner", ""))


def owners(request: StudioRequest) -> list[ApiKey]:
    """The API keys to choose from; read once in a request."""
    found = getattr(request, "owner_choices", None)
    if found is None:
        found = request.owner_choices = access.choices(request.principal)
    return found


def shell(request: StudioRequest, template: str) -> Shell:
    """The frame of a page."""
    current = get_language() or settings.LANGUAGE_CODE
    return Shell(
        tab=TABS.get(template, ""),
        owners=owners(request),
        owner=current_owner(request),
        here=here(request),
        keys=request.COOKIES.get("keys") != "off",
        theme=chosen_theme(request.COOKIES),
        languages=[
            Language(code, get_language_info(code)["name_local"], code == current)
            for code, _name in settings.LANGUAGES
        ],
        health=remembered.recall(HEALTH_CACHE),
    )


TABS: Mapping[str, str] = {
    "memory/memories.html": "memories",
    "memory/add.html": "memories",
    "memory/import.html": "memories",
    "memory/import_check.html": "memories",
    "memory/compact.html": "memories",
    "memory/inbox.html": "inbox",
    "memory/extraction.html": "inbox",
    "memory/extract.html": "playground",
    "memory/playground.html": "playground",
    "memory/engine.html": "engine",
    "memory/gateway.html": "engine",
    "memory/receipt.html": "engine",
    "memory/receipts.html": "engine",
    "memory/request.html": "playground",
    "memory/key_add.html": "engine",
    "memory/vault.html": "vaults",
    "memory/vault_add.html": "vaults",
    "memory/vault_asset.html": "vaults",
    "memory/vault_ask.html": "vaults",
    "memory/vault_edit.html": "vaults",
    "memory/vault_ingest.html": "vaults",
    "memory/vault_parcel.html": "vaults",
    "memory/vault_passphrase.html": "vaults",
    "memory/vault_rules.html": "vaults",
    "memory/vault_service_test.html": "vaults",
    "memory/vault_services.html": "vaults",
    "memory/vault_unlock.html": "vaults",
    "memory/vaults.html": "vaults",
    "memory/webhook.html": "engine",
    "memory/webhook_add.html": "engine",
    "memory/webhooks.html": "engine",
    "memory/provider_edit.html": "engine",
    "memory/provider_test.html": "engine",
}


def here(request: StudioRequest) -> str:
    """The address the browser shows: of the page, also when htmx asks for a part of it."""
    if request.htmx and request.htmx.current_url_abs_path:
        return str(request.htmx.current_url_abs_path)
    return request.get_full_path() if request.method == "GET" else "/"
