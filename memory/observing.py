"""The outermost middleware: each request is counted and timed by the pattern of its address."""

from __future__ import annotations

import time
from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from memory import measured

UNKNOWN = "(none)"
STATIC = "(static)"


class Observing:
    """Middleware."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer, and note how long it took."""
        started = time.perf_counter()
        response = self.get_response(request)
        took_s = time.perf_counter() - started
        measured.request(request.method or "", route_of(request), response.status_code, took_s)
        return response


def route_of(request: HttpRequest) -> str:
    """The pattern of the address (``/api/memory/<memory_id>``), never the address itself."""
    match = request.resolver_match
    if match is not None:
        return f"/{match.route}"
    return STATIC if request.path.startswith(settings.STATIC_URL) else UNKNOWN
