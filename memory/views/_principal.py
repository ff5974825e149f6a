"""Who acts in the studio, which owner they look at, and the guard around every view."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, cast
from urllib.parse import urlencode

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods
from django_htmx.http import HttpResponseClientRedirect
from django_htmx.middleware import HtmxDetails

from engine.database import DatabaseFailed
from engine.errors import EngineError
from memory.errors import ServiceError, database_down, from_engine
from memory.models import ApiKey
from memory.principal import Principal, studio_user
from memory.views._errors import error_response

logger = logging.getLogger("memory.views")

P = ParamSpec("P")


class StudioRequest(HttpRequest):
    """A request of a signed-in studio user."""

    htmx: HtmxDetails
    principal: Principal
    owner_choices: list[ApiKey] | None = None


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
            request.principal = studio_user(request.user.get_username())
            try:
                return checked(request, *args, **kwargs)
            except ServiceError as error:
                return error_response(request, error)
            except EngineError as error:
                return error_response(request, from_engine(error))
            except (OperationalError, InterfaceError, DatabaseFailed):
                logger.exception("the database failed")
                return error_response(request, database_down())

        return cast("Callable[Concatenate[HttpRequest, P], HttpResponseBase]", guarded)

    return decorate


def to_sign_in(request: StudioRequest) -> HttpResponseBase:
    """Send a stranger to the sign-in page, back afterwards where that is a page."""
    here = request.get_full_path() if request.method == "GET" and not request.htmx else "/"
    address = f"{reverse('signin')}?{urlencode({'next': here})}"
    if request.htmx:
        return HttpResponseClientRedirect(address)
    return HttpResponseRedirect(address)
