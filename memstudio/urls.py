"""What is mounted where: the studio at the root, REST under ``/api/``, the language switch."""

from __future__ import annotations

from django.urls import include, path

from memory.api import api

urlpatterns = [
    path("i18n/", include("django.conf.urls.i18n")),
    path("api/", api.urls),
    path("", include("memory.urls")),
]
