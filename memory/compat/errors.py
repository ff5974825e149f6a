"""Errors as these protocols tell them: ``{"detail": "…"}``."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Final

from django.core.exceptions import RequestDataTooBig
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.utils.translation import gettext as _
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError

from engine.database import DatabaseFailed
from engine.errors import EngineError
from memory.api.errors import OF_THE_BODY, fields_of
from memory.errors import ServiceError, database_down, from_engine

logger = logging.getLogger("memory.compat")

PREFIXES: Final = ("/v1/", "/v2/", "/v3/", "/api/v1/", "/mem0/", "/store/")
"""Where these protocols live; whatever fails there has their shape."""


class NotOffered(ServiceError):
    """The protocol has it, this server does not.

    The status is not 501: clients would be told to try again later, and the log would call it a
    failure of the server.
    """

    code, status = "not_offered", 400


def detail(status: int, text: str) -> JsonResponse:
    """An answer in the shape of these protocols."""
    return JsonResponse({"detail": text}, status=status)


def told(error: ServiceError) -> str:
    """An error and the fields it is about, in one line."""
    fields = [f"{name}: {problem}" for name, problem in _fields(error).items()]
    if not fields:
        return error.message
    if len(fields) == 1 and error.message in fields[0]:
        return fields[0]
    return f"{error.message} ({'; '.join(fields)})"


def _fields(error: ServiceError) -> Mapping[str, str]:
    # These protocols write names with an underscore, as the services do.
    return {name if "_" in name else camel: error.fields[name] for name, camel in _named(error)}


def _named(error: ServiceError) -> list[tuple[str, str]]:
    return list(zip(error.fields, fields_of(error), strict=True))


def register(api: NinjaAPI, *, invalid: int) -> None:
    """Make an API answer every failure so; ``invalid`` is the status of what is not acceptable."""

    def service(_request: HttpRequest, error: ServiceError) -> HttpResponse:
        response = detail(invalid if error.status == 422 else error.status, told(error))
        if error.status == 401:
            response["WWW-Authenticate"] = "Token"
        return response

    def engine(request: HttpRequest, error: EngineError) -> HttpResponse:
        return service(request, from_engine(error))

    def database(request: HttpRequest, _error: Exception) -> HttpResponse:
        logger.exception("the database failed")
        return service(request, database_down())

    def validation(_request: HttpRequest, error: ValidationError) -> HttpResponse:
        said = [f"{'.'.join(map(str, item['loc'][2:]))}: {item['msg']}" for item in error.errors]
        return detail(invalid, "; ".join(said))

    def http(_request: HttpRequest, error: HttpError) -> HttpResponse:
        status = error.status_code
        return detail(status, _("The body is not valid JSON.") if status == 400 else str(error))

    handlers: dict[type[Exception], Callable[..., HttpResponse]] = {
        ServiceError: service,
        EngineError: engine,
        ValidationError: validation,
        HttpError: http,
        AuthenticationError: lambda *_given: detail(401, _("The API key is not valid.")),
        Http404: lambda *_given: detail(404, _("There is nothing at this address.")),
        RequestDataTooBig: lambda *_given: detail(413, _("The body is too large.")),
        OperationalError: database,
        InterfaceError: database,
        DatabaseFailed: database,
    }
    for kind, handler in handlers.items():
        api.add_exception_handler(kind, handler)


class CompatErrors:
    """Middleware: what fails before a route of these protocols is reached has their shape too."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Give an error the shape where it has none."""
        response = self.get_response(request)
        is_ours = request.path.startswith(PREFIXES) and response.status_code >= 400
        if not is_ours or "json" in response.get("Content-Type", ""):
            return response
        shaped = detail(response.status_code, _said(response.status_code))
        for name, value in response.items():
            # Inner middleware has set its headers already: the policies, ``Allow``.
            if name.lower() not in OF_THE_BODY:
                shaped[name] = value
        return shaped


def _said(status: int) -> str:
    return {
        404: _("There is nothing at this address."),
        405: _("This address does not know that method."),
        413: _("The body is too large."),
    }.get(status, _("The request could not be carried out."))
