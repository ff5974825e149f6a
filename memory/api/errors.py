"""The one error shape, and what turns every failure into it."""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from django.core.exceptions import RequestDataTooBig
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.utils.translation import gettext as _
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError
from ninja.parser import Parser
from pydantic.alias_generators import to_camel

from engine.database import DatabaseFailed
from engine.errors import EngineError
from memory.errors import ServiceError, database_down, from_engine

logger = logging.getLogger("memory.api")

_CODES: Final = {
    400: "invalid_json",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    413: "too_large",
    429: "rate_limited",
}
OF_THE_BODY: Final = frozenset({"content-type", "content-length", "content-language"})
"""Headers that an answer does not keep when its body is replaced."""


class JsonParser(Parser):
    """Parses bodies; whatever is wrong with one is broken JSON, never a crash."""

    def parse_body(self, request: HttpRequest) -> dict[str, Any]:
        """The JSON object of the body."""
        try:
            body = json.loads(request.body)
        except RecursionError:
            raise ValueError("nested too deeply") from None
        if not isinstance(body, dict):
            raise TypeError("a JSON object is needed")
        return body


def request_id(request: HttpRequest) -> str:
    """Id of a request, the same wherever it is named."""
    # No header of a client can be called this: those begin with HTTP_.
    return str(request.META.setdefault("memory.request_id", uuid.uuid4().hex[:12]))


def error_response(
    request: HttpRequest,
    status: int,
    code: str,
    message: str,
    fields: Mapping[str, str] | None = None,
) -> JsonResponse:
    """An answer in the one error shape."""
    error: dict[str, Any] = {"code": code, "message": message}
    if fields:
        error["fields"] = dict(fields)
    error["requestId"] = request_id(request)
    return JsonResponse({"error": error}, status=status)


def error_out(request: HttpRequest, error: ServiceError) -> dict[str, Any]:
    """Fields of ``ErrorDetail``: what is inside of the one shape."""
    return {
        "code": error.code,
        "message": error.message,
        "fields": fields_of(error) or None,
        "requestId": request_id(request),
    }


def fields_of(error: ServiceError) -> dict[str, str]:
    """The fields of an error by the names that clients use."""
    # A place inside of a value is written as the client wrote it.
    return {name if "." in name else to_camel(name): text for name, text in error.fields.items()}


def places(problems: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """What validation said, by the place in what was sent."""
    return {
        ".".join(str(part) for part in item["loc"]) or "item": str(item["msg"]) for item in problems
    }


def register(api: NinjaAPI) -> None:
    """Make an API answer every failure in the one shape."""
    handlers: dict[type[Exception], Callable[..., HttpResponse]] = {
        ServiceError: _service,
        EngineError: _engine,
        ValidationError: _validation,
        AuthenticationError: _authentication,
        HttpError: _http,
        Http404: _missing,
        RequestDataTooBig: _too_large,
        OperationalError: _database,
        InterfaceError: _database,
        DatabaseFailed: _database,
    }
    for kind, handler in handlers.items():
        api.add_exception_handler(kind, handler)


def _service(request: HttpRequest, error: ServiceError) -> HttpResponse:
    return error_response(request, error.status, error.code, error.message, fields_of(error))


def _engine(request: HttpRequest, error: EngineError) -> HttpResponse:
    return _service(request, from_engine(error))


def _database(request: HttpRequest, _error: Exception) -> HttpResponse:
    logger.exception("the database failed")
    return _service(request, database_down())


def _validation(request: HttpRequest, error: ValidationError) -> HttpResponse:
    fields: dict[str, str] = {}
    for item in error.errors:
        place = [str(part) for part in item["loc"][1:] if part not in ("payload", "query")]
        fields[".".join(place) or str(item["loc"][-1])] = str(item["msg"])
    return error_response(request, 422, "invalid", _("Some fields are not valid."), fields)


def _authentication(request: HttpRequest, _error: AuthenticationError) -> HttpResponse:
    response = error_response(request, 401, "unauthorized", _("An API key or a session is needed."))
    response["WWW-Authenticate"] = "Bearer"
    return response


def _http(request: HttpRequest, error: HttpError) -> HttpResponse:
    status = error.status_code
    text = _("The body is not valid JSON.") if status == 400 else str(error)
    return error_response(request, status, _CODES.get(status, "error"), text)


def _missing(request: HttpRequest, _error: Http404) -> HttpResponse:
    return error_response(request, 404, "not_found", _("There is nothing at this address."))


def _too_large(request: HttpRequest, _error: RequestDataTooBig) -> HttpResponse:
    return error_response(request, 413, "too_large", _("The body is too large."))


class ApiErrors:
    """Middleware: what fails outside the routes under ``/api/`` has the one shape as well."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Give the answer a request id, and the shape where it has none."""
        response = self.get_response(request)
        if not request.path.startswith("/api/"):
            return response
        if response.status_code >= 400 and "json" not in response.get("Content-Type", ""):
            response = self._shaped(request, response)
        response["X-Request-Id"] = request_id(request)
        return response

    def _shaped(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        status = response.status_code
        messages = {
            403: _("The request was refused: the CSRF token is missing or wrong."),
            404: _("There is nothing at this address."),
            405: _("This address does not know that method."),
            413: _("The body is too large."),
        }
        message = messages.get(status, _("The request could not be carried out."))
        code = "bad_request" if status == 400 else _CODES.get(status, "error")
        shaped = error_response(request, status, code, message)
        for name, value in response.items():
            # Inner middleware has set its headers already: the policies, ``Allow``, ``Vary``.
            if name.lower() not in OF_THE_BODY:
                shaped[name] = value
        shaped.cookies = response.cookies
        return shaped
