"""The plugin Local REST API of Obsidian (3.x): its routes, media types, statuses and errors."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from engine.testing.fake_provider import Answer, Request, json_answer

KEY = "5fa1b3c2d4e5f60718293a4b5c6d7e8f"
NOTE = "application/vnd.olrapi.note+json"
START_MS = 1_772_323_200_000


class FakeObsidian:
    """A vault of notes. Use it as ``provider.respond``; faults go through ``provider.script``.

    Like Obsidian on most desktops it knows a file under any case of its name.
    """

    def __init__(self, key: str = KEY) -> None:
        self.files: dict[str, str] = {}
        self.times: dict[str, tuple[int, int]] = {}
        self.key = key
        self._clock = itertools.count(START_MS, 60_000)

    def put(self, path: str, text: str) -> None:
        """Write a note, as a person in Obsidian would."""
        known = self._known(path) or path
        moment = next(self._clock)
        created = self.times.get(known, (moment, moment))[0]
        self.files[known], self.times[known] = text, (created, moment)

    def __call__(self, request: Request) -> Answer:
        """The answer to one request."""
        parts = urlsplit(request.path)
        is_known = request.headers.get("authorization") == f"Bearer {self.key}"
        if parts.path == "/" and request.method == "GET":
            return self._root(is_known)
        if not is_known:
            told = "Authorization required.  Find your API Key in the plugin's settings."
            return _error(401, 40101, told)
        if parts.path == "/search/simple/" and request.method == "POST":
            return self._search(dict(parse_qsl(parts.query, keep_blank_values=True)))
        if parts.path.startswith("/vault/"):
            return self._vault(request, unquote(parts.path.removeprefix("/vault/")))
        return _error(404, 40400, "Not Found")

    def _root(self, is_known: bool) -> Answer:
        versions = {"obsidian": "1.8.9", "self": "3.2.0"}
        service = "Obsidian Local REST API"
        return json_answer(
            {"status": "OK", "service": service, "authenticated": is_known, "versions": versions}
        )

    def _vault(self, request: Request, path: str) -> Answer:
        if not path or path.endswith("/"):
            return self._listed(path) if request.method == "GET" else _error(405, 40510, "No file")
        if request.method == "PUT":
            if request.headers.get("content-type") != "text/markdown":
                return _error(400, 40011, "Incoming content could not be processed.")
            self.put(path, request.body.decode("utf-8"))
            return Answer(204)
        known = self._known(path)
        if known is None:
            return _error(404, 40400, "Not Found")
        if request.method == "DELETE":
            del self.files[known], self.times[known]
            return Answer(204)
        return self._read(known, request.headers)

    def _read(self, path: str, headers: Mapping[str, str]) -> Answer:
        text = self.files[path]
        if headers.get("accept") != NOTE:
            return Answer(200, text.encode(), {"Content-Type": "text/markdown; charset=utf-8"})
        created, modified = self.times[path]
        stat = {"ctime": created, "mtime": modified, "size": len(text.encode())}
        note: dict[str, Any] = {"path": path, "content": text, "stat": stat}
        return json_answer({**note, "tags": [], "frontmatter": {}})

    def _listed(self, folder: str) -> Answer:
        names = {
            rest.partition("/")[0] + ("/" if "/" in rest else "")
            for path in self.files
            if path.startswith(folder) and (rest := path.removeprefix(folder))
        }
        if not names and folder:
            return _error(404, 40400, "Not Found")
        return json_answer({"files": sorted(names)})

    def _search(self, query: Mapping[str, str]) -> Answer:
        if not query.get("query"):
            return _error(400, 40090, "A single '?query=' parameter is required.")
        words = query["query"].casefold().split()
        found = []
        for path, text in self.files.items():
            count = sum(word in text.casefold() for word in words)
            if count:
                found.append({"filename": path, "score": count - len(words) - 0.1, "matches": []})
        found.sort(key=lambda hit: -float(str(hit["score"])))
        return json_answer(found)

    def _known(self, path: str) -> str | None:
        folded = path.casefold()
        return next((name for name in self.files if name.casefold() == folded), None)


def _error(status: int, code: int, message: str) -> Answer:
    return json_answer({"errorCode": code, "message": message}, status)
