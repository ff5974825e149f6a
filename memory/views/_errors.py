"""The one place where the studio turns a service error into an answer."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

from memory.errors import ServiceError
from memory.views._notice import Notice


def error_response(request: HttpRequest, error: ServiceError) -> HttpResponse:
    """A notice for htmx, a page otherwise, with the error's own status."""
    fields = " ".join(error.fields.values())
    text = error.message if error.message in fields or not fields else f"{error.message} {fields}"
    if getattr(request, "htmx", None):
        notice = Notice(text, level="bad")
        response = render(
            request, "components/_notice.html", {"notice": notice}, status=error.status
        )
        response["HX-Retarget"] = "#notices"
        response["HX-Reswap"] = "innerHTML"
        response["HX-Push-Url"] = "false"
        return response
    context = {"status": error.status, "title": _("This did not work"), "text": text}
    return render(request, "error.html", context, status=error.status)
