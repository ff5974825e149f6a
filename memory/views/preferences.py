"""How the studio looks and listens in this browser: cookies, no account data."""

from __future__ import annotations

from typing import Final

from django.http import HttpResponse, HttpResponseRedirect
from django.urls import reverse

from memory.templatetags.studio import THEMES
from memory.views._principal import StudioRequest, studio
from memory.views._render import next_url, render_page

YEAR_SECONDS: Final = 365 * 24 * 3600
CHOICES: Final = {
    "theme": THEMES,
    "keys": ("on", "off"),
    "how": ("open", "folded"),
}


@studio("POST")
def save(request: StudioRequest) -> HttpResponse:
    """Keep the preferences that were sent."""
    response = HttpResponseRedirect(next_url(request, reverse("memories")), status=303)
    for name, known in CHOICES.items():
        value = request.POST.get(name, "")
        if value in known:
            response.set_cookie(name, value, max_age=YEAR_SECONDS, samesite="Lax")
    return response


@studio("GET")
def shortcuts(request: StudioRequest) -> HttpResponse:
    """The list of keys."""
    return render_page(request, "memory/shortcuts.html", {}, partials={"dialog": "form"})
