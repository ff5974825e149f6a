"""Signing in by password or by a one-time link, and signing out."""

from __future__ import annotations

from django.contrib.auth import authenticate, login, logout
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from memory.access_forms import SignInForm
from memory.services import signin
from memory.views._notice import Notice, remember
from memory.views._render import sent

BACKEND = "django.contrib.auth.backends.ModelBackend"


@never_cache
@require_http_methods(["GET", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    """The sign-in page."""
    target = _target(request)
    if request.user.is_authenticated:
        return HttpResponseRedirect(target)
    form = SignInForm(sent(request), auto_id="signin-%s")
    if request.method == "POST" and form.is_valid():
        user = authenticate(request, **form.cleaned_data)
        if user is not None:
            login(request, user)
            return HttpResponseRedirect(target, status=303)
        form.add_error(None, _("User name and password do not match."))
    context = {"form": form, "next": target, "has_password": signin.has_password()}
    return render(request, "signin.html", context, status=422 if form.is_bound else 200)


@never_cache
@require_http_methods(["GET"])
def sign_in_link(request: HttpRequest, token: str) -> HttpResponse:
    """Consume a one-time link."""
    user = signin.use_link(token)
    if user is None:
        context = {
            "status": 410,
            "title": _("This link does not work any more"),
            "text": _(
                "A sign-in link works once, and only the newest one. Start the studio again to "
                "get a fresh link, or sign in with a password if one is set."
            ),
            "action": reverse("signin"),
            "action_label": _("To the sign-in page"),
        }
        return render(request, "error.html", context, status=410)
    login(request, user, backend=BACKEND)
    if not signin.has_password():
        text = _("Signed in. Set a password in Engine, so that you need no link next time.")
        remember(request, Notice(text))
    return HttpResponseRedirect(reverse("memories"))


@require_POST
def sign_out(request: HttpRequest) -> HttpResponseBase:
    """End the session."""
    logout(request)
    return HttpResponseRedirect(reverse("signin"), status=303)


def _target(request: HttpRequest) -> str:
    wanted = request.POST.get("next") or request.GET.get("next") or ""
    is_here = url_has_allowed_host_and_scheme(
        wanted, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return wanted if is_here else reverse("memories")
