"""The tab Engine: tiers, coverage, reindex, settings, jobs, compactions, keys, password."""

from __future__ import annotations

from typing import Any, Final, cast

from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.models import User
from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from memory import remembered
from memory.access_forms import PasswordForm
from memory.errors import Conflict, Invalid
from memory.forms import StudioForm
from memory.services import (
    compaction,
    jobrows,
    keys,
    models,
    qdrant,
    reindex,
    rollback,
    settings,
    signin,
    status,
)
from memory.services.backends.states import backends
from memory.services.gateway import meter
from memory.settings_forms import SettingsForm, qdrant_form, settings_form
from memory.views._notice import Notice
from memory.views._principal import StudioRequest, studio
from memory.views._providers import model_choices, provider_rows
from memory.views._render import (
    HEALTH_CACHE,
    after_change,
    next_url,
    render_page,
    shell,
)
from memory.views._tiers import tier_cards

TEMPLATE: Final = "memory/engine.html"
PARTIALS: Final = {
    "engine-tiers": "tiers",
    "engine-work": "work",
    "engine-settings": "settings",
    "engine-models": "models",
    "engine-providers": "providers",
    "engine-qdrant": "qdrant",
    "qdrant-state": "qdrant_state",
    "qdrant-tools": "qdrant_tools",
    "engine-backends": "backends",
    "engine-compactions": "compactions",
    "engine-keys": "keys",
    "engine-password": "password",
}
HEALTH_SECONDS: Final = 300
JOBS_SHOWN: Final = 10


@studio("GET")
def index(request: StudioRequest) -> HttpResponse:
    """The page, or the one region htmx asks for; a poll of running work reads little."""
    target = request.htmx.target if request.htmx else ""
    context = _PARTS.get(target or "", full)(request)
    response = render_page(request, TEMPLATE, context, partials=PARTIALS)
    if target == "engine-work" and not context["active"]:
        response["HX-Trigger"] = "job-ended"
    return response


def work(request: StudioRequest) -> dict[str, Any]:
    """Coverage and jobs, which change while work runs."""
    jobs = jobrows.list_jobs(request.principal, limit=JOBS_SHOWN, is_brief=True)
    return {
        "coverage": status.coverage(request.principal),
        "jobs": jobs,
        "active": [job for job in jobs if job.is_active],
        "jobs_delay": jobrows.delay(request.principal),
    }


def full(request: StudioRequest) -> dict[str, Any]:
    """Everything on the page."""
    state = status.engine_status(request.principal)
    chosen = settings.get()
    jobs = jobrows.list_jobs(request.principal, limit=JOBS_SHOWN, is_brief=True)
    providers = provider_rows(request.principal, chosen)
    return {
        "tiers": tier_cards(state),
        "coverage": state.coverage,
        "jobs": jobs,
        "active": [job for job in jobs if job.is_active],
        "jobs_delay": jobrows.delay(request.principal),
        "settings": chosen,
        "settings_form": settings_form(chosen, models.installed_embedders()),
        "models": models.local_models(request.principal),
        "providers": providers,
        "model_choices": model_choices(request.principal, providers),
        "qdrant_form": qdrant_form(chosen),
        "qdrant_tier": state.qdrant,
        "qdrant_job": qdrant.building(),
        "backends": backends(request.principal, check=False),
        "compactions": compaction.recent(request.principal),
        "spent": meter.chatting(request.principal),
        "keys": keys.list_keys(request.principal),
        "has_password": signin.has_password(),
        "password_form": PasswordForm(auto_id="pass-%s"),
    }


def qdrant_state(request: StudioRequest) -> dict[str, Any]:
    """Where Qdrant stands, which changes while a collection is built."""
    tier = status.qdrant_tier(request.principal)
    return {"qdrant_tier": tier, "qdrant_job": qdrant.building()}


_PARTS: Final = {"engine-work": work, "qdrant-state": qdrant_state}
"""What a poll of one region reads, where that is less than the page."""


@studio("POST")
def save_settings(request: StudioRequest) -> HttpResponse:
    """Change the memory settings."""
    form = SettingsForm(
        request.POST,
        auto_id="set-%s",
        models=models.installed_embedders(),
        chosen=settings.get().local_model,
    )
    if form.is_valid():
        try:
            settings.update(request.principal, form.changes())
            return saved(request, Notice(_("Settings saved.")), "engine-settings")
        except (Invalid, Conflict) as error:
            form.absorb(error)
    return refused(request, "settings_form", form)


@studio("POST")
def save_password(request: StudioRequest) -> HttpResponse:
    """Set the signed-in user's password; this session stays."""
    form = PasswordForm(request.POST, auto_id="pass-%s")
    if form.is_valid():
        try:
            user = cast(User, request.user)
            signin.set_password(user.pk, form.cleaned_data["password"])
            user.refresh_from_db()
            update_session_auth_hash(request, user)
            text = _("Password set. From now on you sign in with it.")
            return saved(request, Notice(text), "engine-password")
        except Invalid as error:
            form.absorb(error)
    return refused(request, "password_form", form)


@studio("POST")
def start_reindex(request: StudioRequest) -> HttpResponse:
    """Start the reindex job, or show the one that runs."""
    reindex.start(request.principal, force=request.POST.get("force") == "1")
    if not request.htmx:
        return HttpResponseRedirect(reverse("engine"), status=303)
    return work_region(request)


@studio("POST")
def roll_back(request: StudioRequest) -> HttpResponse:
    """Go back to the model before the last change."""
    done = rollback.roll_back(request.principal)
    text = _("Going back to %(model)s as soon as what changed meanwhile is embedded.")
    if done.is_active:
        text = _("Back to the model %(model)s.")
    notice = Notice(text % {"model": done.index.model})
    response = saved(request, notice, "engine-work")
    if request.htmx:
        # The form with the settings shows what is in force again.
        response["HX-Trigger"] += ", source-changed"
    return response


@studio("POST")
def drop_retired(request: StudioRequest) -> HttpResponse:
    """Drop the index that is kept to go back to."""
    rollback.drop_now(request.principal)
    return saved(request, Notice(_("The earlier index is dropped.")), "engine-work")


def work_region(request: StudioRequest) -> HttpResponse:
    """Coverage and jobs after a form in them was sent."""
    return render_page(request, TEMPLATE, work(request), partials=PARTIALS)


@studio("POST")
def check_health(request: StudioRequest) -> HttpResponse:
    """Run the real round trip; every page shows its result for five minutes."""
    result = status.health(request.principal)
    shown = {
        "working": result.working,
        "latency_ms": result.latency_ms,
        "error": result.error or "",
        "checked_at": f"{timezone.localtime():%H:%M}",
    }
    remembered.remember(HEALTH_CACHE, shown, HEALTH_SECONDS)
    if not request.htmx:
        return HttpResponseRedirect(next_url(request, reverse("memories")), status=303)
    context = {"health": shown, "shell": shell(request, TEMPLATE)}
    return render(request, "components/_health.html", context)


def changed(request: StudioRequest, notice: Notice, region: str) -> HttpResponse:
    """One region, the tiers and a notice after a change."""
    context = full(request) | {"notice": notice, "with_notices": True}
    response = render_page(
        request, TEMPLATE, context, partials={request.htmx.target or "": PARTIALS[region]}
    )
    response["HX-Retarget"] = f"#{region}"
    response["HX-Reswap"] = "outerHTML"
    # Another source or store changes the cards, and may have started a job.
    response["HX-Trigger"] = "settings-changed, job-started"
    return response


def saved(request: StudioRequest, notice: Notice, region: str) -> HttpResponse:
    """What a form that was saved is answered with."""
    return after_change(
        request, notice, fragment=lambda n: changed(request, n, region), page="engine"
    )


def refused(request: StudioRequest, name: str, form: StudioForm) -> HttpResponse:
    """The form with what is wrong with it."""
    context = full(request) | {name: form}
    return render_page(request, TEMPLATE, context, partials=PARTIALS, status=form.status)
