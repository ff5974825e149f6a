"""The part of Notion's API (version 2022-06-28) that a database of memories needs."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from engine.testing.fake_provider import Answer, Request, json_answer

KEY = "ntn_0123456789abcdef"
VERSION = "2022-06-28"
DATABASE = "d9824bdc-8445-4327-be8b-5b47500af6ce"
SCHEMA = {
    "Name": "title",
    "Content": "rich_text",
    "Type": "select",
    "Owner": "rich_text",
    "Session": "rich_text",
    "Metadata": "rich_text",
    "Expires": "date",
}
START = datetime(2026, 3, 1, tzinfo=UTC)
MAX_TEXT = 2000

Page = dict[str, Any]


class FakeNotion:
    """One database. Use it as ``provider.respond``; faults go through ``provider.script``.

    ``page_size`` bounds what one query answers, below what clients may ask for.
    """

    def __init__(self, key: str = KEY, page_size: int = 100) -> None:
        self.pages: dict[str, Page] = {}
        self.schema = dict(SCHEMA)
        self.key = key
        self.page_size = page_size
        self._clock = itertools.count()

    def __call__(self, request: Request) -> Answer:
        """The answer to one request."""
        if request.headers.get("authorization") != f"Bearer {self.key}":
            return _error(401, "unauthorized", "API token is invalid.")
        if request.headers.get("notion-version") != VERSION:
            return _error(400, "missing_version", "Notion-Version header should be defined.")
        parts = tuple(urlsplit(request.path).path.strip("/").split("/"))
        if parts[:1] != ("v1",):
            return _error(400, "invalid_request_url", "Invalid request URL.")
        return self._routed(request, parts[1:])

    def _routed(self, request: Request, path: tuple[str, ...]) -> Answer:
        if path == ("pages",) and request.method == "POST":
            return self._create(request.json())
        if len(path) == 2 and path[0] == "pages":
            return self._page(request, path[1])
        if len(path) >= 2 and path[0] == "databases":
            if path[1].replace("-", "") != DATABASE.replace("-", ""):
                return _error(404, "object_not_found", "Could not find database.")
            return self._database() if path[2:] == () else self._query(request.json())
        return _error(400, "invalid_request_url", "Invalid request URL.")

    def _database(self) -> Answer:
        properties = {name: {"id": name, "type": kind} for name, kind in self.schema.items()}
        title = [{"type": "text", "plain_text": "Memories"}]
        return json_answer(
            {"object": "database", "id": DATABASE, "title": title, "properties": properties}
        )

    def _create(self, body: Mapping[str, Any]) -> Answer:
        if str(body["parent"]["database_id"]).replace("-", "") != DATABASE.replace("-", ""):
            return _error(404, "object_not_found", "Could not find database.")
        page: Page = {
            "object": "page",
            "id": str(uuid.uuid4()),
            "parent": {"type": "database_id", "database_id": DATABASE},
            "archived": False,
            "created_time": self._now(),
            "properties": {name: _empty(kind) for name, kind in self.schema.items()},
        }
        return self._stored(page, body["properties"])

    def _page(self, request: Request, key: str) -> Answer:
        page = self.pages.get(str(uuid.UUID(key)))
        if page is None:
            return _error(404, "object_not_found", "Could not find page.")
        if request.method == "GET":
            return json_answer(page)
        body: Mapping[str, Any] = request.json()
        if page["archived"] and "archived" not in body:
            return _error(400, "validation_error", "Can't edit block that is archived.")
        page["archived"] = body.get("archived", page["archived"])
        return self._stored(page, body.get("properties", {}))

    def _stored(self, page: Page, properties: Mapping[str, Any]) -> Answer:
        for name, value in properties.items():
            kind = self.schema.get(name)
            if kind is None or kind not in value:
                return _error(400, "validation_error", f"{name} is not a property that exists.")
            if isinstance(value[kind], list) and (told := _too_long(value[kind])):
                return _error(400, "validation_error", told)
            page["properties"][name] = _read_back(kind, value[kind])
        page["last_edited_time"] = self._now()
        self.pages[page["id"]] = page
        return json_answer(page)

    def _query(self, body: Mapping[str, Any]) -> Answer:
        wanted = body.get("filter")
        live = [page for page in self.pages.values() if not page["archived"]]
        found = [page for page in live if wanted is None or _holds(page, wanted)]
        found.sort(key=lambda page: str(page["created_time"]), reverse=True)
        start = int(body.get("start_cursor", 0))
        end = start + min(self.page_size, int(body.get("page_size", 100)))
        more = end < len(found)
        return json_answer(
            {
                "object": "list",
                "results": found[start:end],
                "has_more": more,
                "next_cursor": str(end) if more else None,
            }
        )

    def _now(self) -> str:
        return (START + timedelta(minutes=next(self._clock))).isoformat()


def _holds(page: Page, wanted: Mapping[str, Any]) -> bool:
    if "and" in wanted:
        return all(_holds(page, inner) for inner in wanted["and"])
    if "or" in wanted:
        return any(_holds(page, inner) for inner in wanted["or"])
    prop = page["properties"][wanted["property"]]
    kind = prop["type"]
    ((test, value),) = wanted[kind].items()
    text = _text(prop)
    tests: dict[str, Callable[[], bool]] = {
        "equals": lambda: text == value,
        "contains": lambda: value.casefold() in text.casefold(),
        "is_empty": lambda: not text,
    }
    return tests[test]()


def _text(prop: Mapping[str, Any]) -> str:
    held = prop[prop["type"]]
    if isinstance(held, list):
        return "".join(piece["plain_text"] for piece in held)
    return str(held.get("name", "")) if held else ""


def _empty(kind: str) -> Page:
    return {"id": kind, "type": kind, kind: [] if kind in ("title", "rich_text") else None}


def _read_back(kind: str, value: Any) -> Page:
    if isinstance(value, list):
        value = [{**piece, "plain_text": piece["text"]["content"]} for piece in value]
    return {"id": kind, "type": kind, kind: value}


def _too_long(pieces: list[Any]) -> str:
    if len(pieces) > 100:
        return "body.properties should have at most 100 elements."
    sizes = [len(piece["text"]["content"].encode("utf-16-le")) // 2 for piece in pieces]
    return "text.content.length should be at most 2000." if max(sizes, default=0) > MAX_TEXT else ""


def _error(status: int, code: str, message: str) -> Answer:
    return json_answer(
        {"object": "error", "status": status, "code": code, "message": message}, status
    )
