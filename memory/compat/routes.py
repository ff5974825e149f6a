"""One API for each protocol. They are left out of our OpenAPI document and have no pages: whoever
uses them has a client, and the document of its own system."""

from __future__ import annotations

from typing import Final

from ninja import NinjaAPI

from memory.api.errors import JsonParser
from memory.compat import errors
from memory.compat.auth import AnyHeaderKey
from memory.compat.langgraph import store
from memory.compat.mem0 import entities, memories, project, server


def _api(name: str, *, invalid: int) -> NinjaAPI:
    api = NinjaAPI(
        title=name,
        auth=[AnyHeaderKey()],
        parser=JsonParser(),
        urls_namespace=name,
        docs_url=None,
        openapi_url=None,
    )
    errors.register(api, invalid=invalid)
    return api


mem0: Final = _api("mem0", invalid=400)
for _router in (project.router, memories.router, entities.router):
    mem0.add_router("", _router)
mem0_server: Final = _api("mem0-server", invalid=400)
mem0_server.add_router("", server.router)
langgraph: Final = _api("langgraph", invalid=422)
langgraph.add_router("", store.router)
