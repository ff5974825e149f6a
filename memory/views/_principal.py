"""Who acts in the studio, which owner they look at, and the guard around every view."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, cast
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods
from django_htmx.http import HttpResponseClientRedirect
from django_htmx.middleware import HtmxDetails

from memory.errors import ServiceError
from memory.principal import ALL_SCOPES, Principal
from memory.views._errors import error_response

P = ParamSpec("P")


class StudioRequest(HttpRequest):
    """A request of a signed-in studio user."""

    htmx: HtmxDetails
    principal: Principal


def studio_principal(request: HttpRequest) -> Principal:
    """The principal of a signed-in request; a studio user holds every scope."""
    name = request.user.get_username()
    return Principal(kind="studio", name=name, scopes=ALL_SCOPES, user_id=request.user.pk)


def studio(
    *methods: str,
) -> Callable[
    [Callable[Concatenate[StudioRequest, P], HttpResponseBase]],
    Callable[Concatenate[HttpRequest, P], HttpResponseBase],
]:
    """Guard a view: allowed methods, signed in, principal attached, service errors told."""

    def decorate(
        view: Callable[Concatenate[StudioRequest, P], HttpResponseBase],
    ) -> Callable[Concatenate[HttpRequest, P], HttpResponseBase]:
        checked = require_http_methods(list(methods))(view)

        @wraps(view)
        def guarded(
            request: StudioRequest, /, *args: P.args, **kwargs: P.kwargs
        ) -> HttpResponseBase:
            if not request.user.is_authenticated:
                return to_sign_in(request)
            request.principal = studio_principal(request)
            try:
                return checked(request, *args, **kwargs)
            except ServiceError as error:
                return error_response(request, error)

        return cast("Callable[Concatenate[HttpRequest, P], HttpResponseBase]", guarded)

    return decorate


def to_sign_in(request: StudioRequest) -> HttpResponseBase:
    """Send a stranger to the sign-in page, back afterwards where that is a page."""
    here = request.get_full_path() if request.method == "GET" and not request.htmx else "/"
    address = f"{reverse('signin')}?{urlencode({'next': here})}"
    if request.htmx:
        return HttpResponseClientRedirect(address)
    return HttpResponseRedirect(address)
