"""What may be kept of an answer: nothing of an API, and of a page only by who has asked for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from django.http import HttpRequest, HttpResponseBase

HEADER: Final = "Cache-Control"
PAGE: Final = "private, no-cache"
OTHER: Final = "no-store"


class Uncached:
    """Middleware: says so where a view has said nothing. Files under ``/static/`` never get here.

    Answers hold memories, and some a secret that is shown once; no proxy and no disk is to have
    them.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer the request, with the header."""
        response = self.get_response(request)
        is_html = response.headers.get("Content-Type", "").startswith("text/html")
        is_page = is_html and response.status_code < 400
        response.headers.setdefault(HEADER, PAGE if is_page else OTHER)
        return response
