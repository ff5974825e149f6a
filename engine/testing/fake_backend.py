"""A REST service of memories, as the conventions of the HTTP backend have it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from engine.testing.fake_provider import Answer, Request, json_answer

KEY = "secret-key-1234"
START = datetime(2026, 3, 1, tzinfo=UTC)

Parts = tuple[str, ...]


class FakeService:
    """Keeps memories. Use it as ``provider.respond``; faults go through ``provider.script``.

    ``base`` is a path everything lies under. Ids hold a slash and a space, which clients have to
    encode.
    """

    def __init__(self, base: str = "", key: str = KEY) -> None:
        self.rows: dict[str, dict[str, Any]] = {}
        self.base = base
        self.key = key
        self._ids = itertools.count(1)

    def __call__(self, request: Request) -> Answer:
        """The answer to one request."""
        if request.headers.get("authorization") != f"Bearer {self.key}":
            return _error(401, "Unauthorized")
        parts = urlsplit(request.path)
        if not parts.path.startswith(f"{self.base}/"):
            return _error(404, "There is nothing here")
        path = tuple(parts.path.removeprefix(f"{self.base}/").split("/"))
        query = dict(parse_qsl(parts.query))
        return self._routed(request, path, query)

    def _routed(self, request: Request, path: Parts, query: Mapping[str, str]) -> Answer:
        routes: dict[tuple[str, Parts], Callable[[], Answer]] = {
            ("GET", ("health",)): lambda: json_answer({"status": "ok"}),
            ("GET", ("memories",)): lambda: self._list(query),
            ("POST", ("memories",)): lambda: self._create(request),
            ("GET", ("memories", "search")): lambda: self._search(query),
        }
        route = routes.get((request.method, path))
        if route is not None:
            return route()
        if len(path) == 2 and path[0] == "memories":
            return self._one(request, unquote(path[1]))
        return _error(404, "There is nothing here")

    def _create(self, request: Request) -> Answer:
        number = next(self._ids)
        row: dict[str, Any] = {**request.json(), "id": f"m/{number} x"}
        row["createdAt"] = row["updatedAt"] = (START + timedelta(minutes=number)).isoformat()
        self.rows[row["id"]] = row
        return json_answer(row, 201)

    def _one(self, request: Request, key: str) -> Answer:
        row = self.rows.get(key)
        if row is None:
            return _error(404, "Memory not found")
        if request.method == "GET":
            return json_answer(row)
        if request.method == "DELETE":
            del self.rows[key]
            return Answer(204)
        if request.method == "PATCH":
            row.update(request.json())
            return json_answer(row)
        return _error(405, "Method not allowed")

    def _list(self, query: Mapping[str, str]) -> Answer:
        found = self._narrowed(query)
        text = query.get("query", "").casefold()
        found = [row for row in found if text in f"{row['key']}\n{row['content']}".casefold()]
        kinds = [row["type"] for row in found]
        start = int(query.get("offset", 0))
        return json_answer(
            {
                "data": found[start : start + int(query.get("limit", 50))],
                "total": len(found),
                "byType": {kind: kinds.count(kind) for kind in kinds},
            }
        )

    def _search(self, query: Mapping[str, str]) -> Answer:
        if not query.get("query"):
            return _error(400, "query is required")
        words = query["query"].casefold().split()
        scored = []
        for row in self._narrowed(query):
            text = f"{row['key']}\n{row['content']}".casefold()
            if held := sum(word in text for word in words):
                scored.append({**row, "score": held / len(words)})
        scored.sort(key=lambda row: -row["score"])
        return json_answer(scored[: int(query.get("limit", 10))])

    def _narrowed(self, query: Mapping[str, str]) -> list[dict[str, Any]]:
        names = ("apiKeyId", "type", "sessionId")
        wanted = {name: query[name] for name in names if query.get(name)}
        rows = [row for row in self.rows.values() if wanted.items() <= row.items()]
        return sorted(rows, key=lambda row: str(row["createdAt"]), reverse=True)


def _error(status: int, message: str) -> Answer:
    return json_answer({"error": {"message": message}}, status)
