"""Any REST service of memories (first seed, GenericMemoryBackend)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal
from urllib.parse import quote

from engine.backends.http_answer import created_in, page_in, record_in, records_in
from engine.backends.latency import Facts, checked
from engine.backends.rest import Call, Rest, parsed
from engine.errors import BackendFailed
from engine.records import Changes, Draft, Filter, Page, Record, Search, to_text
from engine.types import Health

ENDPOINTS: Final[Mapping[str, str]] = {
    "search": "/memories/search",
    "create": "/memories",
    "list": "/memories",
    "get": "/memories/{id}",
    "update": "/memories/{id}",
    "delete": "/memories/{id}",
    "health": "/health",
}
QUERY_PARAMS: Final = (
    "query",
    "apiKeyId",
    "limit",
    "offset",
    "strategy",
    "maxTokens",
    "type",
    "sessionId",
    "orderBy",
    "orderDir",
    "options",
)
PATH_PARAMS: Final = ("id", "memoryId")
PROBE: Final = "health"


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a service differs from the conventions: paths, names of parameters, the method of
    updates. What is not given is as the convention has it."""

    endpoints: Mapping[str, str] = field(default_factory=dict)
    query_params: Mapping[str, str] = field(default_factory=dict)
    path_params: Mapping[str, str] = field(default_factory=dict)
    update_method: Literal["PATCH", "PUT"] = "PATCH"
    owner: str = ""
    """Whose memories are those that name nobody."""


class HttpBackend:
    """A memory service over HTTP. Thread-safe."""

    def __init__(
        self, backend_id: str, display_name: str, rest: Rest, dialect: Dialect | None = None
    ) -> None:
        self._id = backend_id
        self._display_name = display_name
        self._rest = rest
        self._dialect = dialect or Dialect()
        self._paths = {**ENDPOINTS, **self._dialect.endpoints}

    @property
    def id(self) -> str:
        return self._id

    @property
    def display_name(self) -> str:
        return self._display_name

    def initialize(self) -> None:
        """Ask the service for its health. Raises ``BackendFailed``."""
        self._alive()

    def shutdown(self) -> None:
        """Close idle connections."""
        self._rest.close()

    def create(self, draft: Draft) -> Record:
        """POST the draft; an answer with nothing but an id is enough."""
        body = {
            "apiKeyId": draft.owner,
            "sessionId": draft.session,
            "type": draft.type,
            "key": draft.key,
            "content": draft.content,
            "metadata": dict(draft.metadata),
            "expiresAt": to_text(draft.expires_at),
        }
        return created_in(self._rest.json(Call("POST", self._paths["create"], body=body)), draft)

    def _owned(self, record: Record) -> Record:
        return record if record.owner else replace(record, owner=self._dialect.owner)

    def get(self, record_id: str) -> Record | None:
        """None for 404 only: any other failure is one."""
        path = self._path("get", record_id)
        body = self._rest.send(Call("GET", path)) if path else None
        return None if body is None else self._owned(record_in(parsed(body)))

    def update(self, record_id: str, changes: Changes) -> bool:
        """Send the fields that change."""
        path = self._path("update", record_id)
        call = Call(self._dialect.update_method, path, body=_sent(changes))
        return bool(path) and self._rest.send(call) is not None

    def delete(self, record_id: str) -> bool:
        """DELETE; whatever the body of a success holds."""
        path = self._path("delete", record_id)
        return bool(path) and self._rest.send(Call("DELETE", path)) is not None

    def list_records(self, wanted: Filter) -> Page:
        """One page as the service has it."""
        query = self._query(
            query=wanted.query,
            apiKeyId=wanted.owner,
            type=wanted.type,
            sessionId=wanted.session,
            limit=str(wanted.limit),
            offset=str(wanted.offset),
            orderBy="createdAt",
            orderDir="desc",
        )
        page = page_in(self._rest.json(Call("GET", self._paths["list"], query)))
        return replace(page, data=[self._owned(record) for record in page.data])

    def search(self, wanted: Search) -> list[Record]:
        """The service's own order; never more than asked for."""
        return [self._owned(record) for record in self._search(wanted)[: wanted.limit]]

    def health(self) -> Health:
        """Its health route where it has one, and a real search in any case."""
        return checked(self._probed)

    def _probed(self) -> Facts:
        has_route = self._alive()
        self._search(Search(PROBE, limit=1), patient=False)
        return {"has_health_route": has_route}

    def _alive(self) -> bool:
        return self._rest.send(Call("GET", self._paths["health"]), patient=False) is not None

    def _search(self, wanted: Search, *, patient: bool = True) -> list[Record]:
        query = self._query(
            query=wanted.query,
            apiKeyId=wanted.owner,
            limit=str(wanted.limit),
            strategy=wanted.strategy,
            maxTokens="" if wanted.max_tokens is None else str(wanted.max_tokens),
            type=wanted.type,
            sessionId=wanted.session,
            options=json.dumps(dict(wanted.options)) if wanted.options else "",
        )
        call = Call("GET", self._paths["search"], query)
        return records_in(self._rest.json(call, patient=patient))

    def _query(self, **values: str) -> dict[str, str]:
        """Parameters under the service's names; blank ones are not sent."""
        names = self._dialect.query_params
        return {names.get(name, name): value for name, value in values.items() if value}

    def _path(self, endpoint: str, record_id: str) -> str:
        """The path of one record; empty when no record can have this id.

        An id is one piece of the path, whatever characters it holds. Dots alone would be read as
        a way up, even encoded.
        """
        if not record_id or record_id.strip(".") == "" or not record_id.isprintable():
            return ""
        try:
            encoded = quote(record_id, safe="")
        except UnicodeEncodeError:
            return ""
        path = self._paths[endpoint]
        for name in (*PATH_PARAMS, *self._dialect.path_params.values()):
            path = path.replace("{" + name + "}", encoded)
        if "{" in path:
            raise BackendFailed("The path of the service names an unknown parameter.")
        return path


def _sent(changes: Changes) -> dict[str, object]:
    values: dict[str, object] = dict(changes)
    if "session" in values:
        values["sessionId"] = values.pop("session")
    if "expires_at" in values:
        values["expiresAt"] = to_text(changes["expires_at"])
        del values["expires_at"]
    if "metadata" in changes:
        values["metadata"] = dict(changes["metadata"])
    return values
