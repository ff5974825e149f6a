"""The outermost middleware: each request is counted, timed and traced by the pattern of its
address."""

from __future__ import annotations

import time
from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from engine import spans
from engine.spans import Span
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
        method = request.method or ""
        parent = request.headers.get("traceparent", "")
        with spans.span("request", "server", parent=parent) as span:
            response = self.get_response(request)
            route = route_of(request)
            describe(span, method, route, response.status_code)
        measured.request(method, route, response.status_code, time.perf_counter() - started)
        return response


def describe(span: Span, method: str, route: str, status: int) -> None:
    """Name the span of a request that was answered."""
    known = measured.method_of(method)
    span.rename(f"{known} {route}")
    span.set("http.request.method", known)
    span.set("http.route", route)
    span.set("http.response.status_code", status)
    if status >= 500:
        span.failed(str(status))


def route_of(request: HttpRequest) -> str:
    """The pattern of the address (``/api/memory/<memory_id>``), never the address itself."""
    match = request.resolver_match
    if match is not None:
        return f"/{match.route}"
    return STATIC if request.path.startswith(settings.STATIC_URL) else UNKNOWN
