"""The services of vaults in the studio: chosen, tried, and what each of them is sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from django.http import Http404, HttpResponse
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memory import provider_sources, vault_wiring
from memory.errors import ServiceError
from memory.services import settings
from memory.services.vaults import checking, choosing
from memory.vault_service_forms import services_form
from memory.vault_services import NAMES, Chosen, ServiceName
from memory.vault_texts import problem
from memory.views._notice import Notice
from memory.views._principal import StudioRequest
from memory.views._providers import ProviderRow, model_choices, provider_rows
from memory.views._render import render_page, sent
from memory.views._vaults import go, vault_page

PAGE: Final = "memory/vault_services.html"
TEST: Final = "memory/vault_service_test.html"
DIALOG: Final = {"dialog": "form"}
TITLES: Final[dict[ServiceName, str | Promise]] = {
    "embedding": gettext_lazy("Embedding"),
    "generation": gettext_lazy("Answers"),
    "rerank": gettext_lazy("Ranking"),
}
SENT: Final[dict[ServiceName, str | Promise]] = {
    "embedding": gettext_lazy(
        "Sent: title and text of every chunk of a vault when it is searched by meaning and its "
        "vectors are not in memory: after each unlock or start, and after searches of two other "
        "vaults; then each such query. A vault with a model of its own sends nothing."
    ),
    "generation": gettext_lazy("Sent: each question, with the chunks that were found for it."),
    "rerank": gettext_lazy(
        "Sent: each query that is ranked, with up to 100 chunks that were found for it."
    ),
}
WITHOUT: Final[dict[ServiceName, str | Promise]] = {
    "embedding": gettext_lazy("a model on this machine"),
    "generation": gettext_lazy("nobody answers"),
    "rerank": gettext_lazy("a rule on this machine"),
}


@dataclass(frozen=True, slots=True)
class Panel:
    """One service: what is in force, what it is sent, and the names of its fields in the form."""

    name: ServiceName
    title: str | Promise
    sent: str | Promise
    without: str | Promise
    chosen: Chosen | None
    problem: str
    fields: tuple[Any, ...]

    @property
    def is_fixed(self) -> bool:
        """Whether the file decides."""
        return self.chosen is not None and self.chosen.origin == "config"


@vault_page("GET", "POST")
def edit(request: StudioRequest) -> HttpResponse:
    """Which services vaults use. Saving is the consent to send to them."""
    choice = choosing.get(request.principal)
    fixed = [name for name in NAMES if choosing.is_fixed(name)]
    form = services_form(choice.kept, sent(request), fixed)
    if request.method == "POST" and form.is_valid():
        try:
            revision = form.cleaned_data["revision"]
            choosing.update(request.principal, form.changes(), revision=revision)
            text = _("The services of vaults are saved. Test them.")
            return go(request, reverse("vault-services"), Notice(text))
        except ServiceError as error:
            form.absorb(error)
    rows = provider_rows(request.principal, settings.get())
    context = {
        "form": form,
        "panels": [_panel(name, choice.services.named(name), form) for name in NAMES],
        "http": vault_wiring.config().http,
        "has_providers": bool(rows),
        "model_choices": model_choices(request.principal, rows),
        "writers": _writers(rows),
    }
    status = form.status if form.is_bound and form.errors else 200
    return render_page(request, PAGE, context, status=status)


@vault_page("POST")
def test(request: StudioRequest) -> HttpResponse:
    """Ask one service for real and show what it said."""
    name = next((name for name in NAMES if name == request.POST.get("service")), None)
    if name is None:
        raise Http404
    done = checking.check(request.principal, name)
    context = {"check": done, "what": TITLES[name]}
    return render_page(request, TEST, context, partials=DIALOG)


def _panel(name: ServiceName, chosen: Chosen | None, form: Any) -> Panel:
    fields = [form.api_names[api] for api in choosing.FIELDS[name]]
    return Panel(
        name,
        TITLES[name],
        SENT[name],
        WITHOUT[name],
        chosen,
        problem(chosen.problem) if chosen and chosen.problem else "",
        tuple(form[field] for field in fields if field in form.fields),
    )


def _writers(rows: list[ProviderRow]) -> list[str]:
    """Chat models that providers are known to have, as far as they have whole names."""
    return [
        f"{row.entry.name}/{model}"
        for row in rows
        if row.state == "on" and provider_sources.abilities(row.entry.spec)["chat"]
        for model in row.entry.spec.patterns
        if "*" not in model
    ]
