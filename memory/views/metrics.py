"""``/metrics``: who may scrape, and the answer."""

from __future__ import annotations

import hmac

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from memory.errors import ServiceError, Unauthorized
from memory.principal import Principal, studio_user
from memory.services import keys, metrics

BEARER = "bearer "


@require_GET
def show(request: HttpRequest) -> HttpResponse:
    """The metrics, for the token of the configuration, a key with ``manage`` or the studio."""
    try:
        principal = _caller(request)
        body, content_type = metrics.exposition(principal, request.headers.get("Accept", ""))
    except ServiceError as error:
        response = HttpResponse(
            f"{error.message}\n", status=error.status, content_type="text/plain; charset=utf-8"
        )
        if error.status == 401:
            response["WWW-Authenticate"] = "Bearer"
        return response
    response = HttpResponse(body, content_type=content_type)
    response["Cache-Control"] = "no-store"
    return response


def _caller(request: HttpRequest) -> Principal | None:
    """Who scrapes; None for the token of the configuration. Raises ``Unauthorized``."""
    header = request.headers.get("Authorization", "")
    if header[: len(BEARER)].lower() == BEARER:
        given, token = header[len(BEARER) :].strip(), settings.MEMORY_STUDIO_METRICS_TOKEN
        if token and hmac.compare_digest(given.encode("utf-8", "replace"), token.encode()):
            return None
        return keys.authenticate(given)
    if request.user.is_authenticated:
        return studio_user(request.user.get_username())
    raise Unauthorized("A token, a key with the scope manage, or a session is needed.")
