"""What is mounted where: the studio at the root, REST under ``/api/``, the language switch, and
other systems' protocols at their own paths."""

from __future__ import annotations

from django.urls import include, path

from memory.api import api
from memory.compat.routes import langgraph, mem0, mem0_server

urlpatterns = [
    path("i18n/", include("django.conf.urls.i18n")),
    path("api/", api.urls),
    path("", include("memory.urls")),
    path("mem0/", mem0_server.urls),
    path("store/", langgraph.urls),
    # Its paths begin at the root, also within /api/v1/; last, since a root comes with it.
    path("", mem0.urls),
]
