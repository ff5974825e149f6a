"""A database of Notion as a memory backend: each page is a memory, its properties the fields.

Notion cuts every text at 2,000 characters and a property at 100 texts, which is what a memory may
have. The database needs the properties of ``notion_pages.PROPERTIES``; ``health`` says which are
missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final
from urllib.parse import quote

from engine.backends import notion_pages as pages
from engine.backends.latency import Facts, checked
from engine.backends.notion_pages import Names
from engine.backends.rest import Call, Rest, parsed
from engine.errors import BackendFailed
from engine.net.strict_json import Json
from engine.records import Changes, Draft, Filter, Page, Record, Search, best_of, page_of
from engine.types import Health

PAGE_SIZE: Final = 100
MAX_PAGES: Final = 100
"""Requests of one list: 10,000 memories."""


@dataclass(frozen=True, slots=True)
class Database:
    """Which database, what its properties are called, whose pages are that name no owner."""

    id: str
    names: Names = field(default_factory=Names)
    owner: str = ""


class NotionBackend:
    """One database. Thread-safe."""

    def __init__(
        self,
        backend_id: str,
        display_name: str,
        rest: Rest,
        database: Database,
    ) -> None:
        self._id = backend_id
        self._display_name = display_name
        self._rest = rest
        self._database = database.id
        self._names = database.names
        self._owner = database.owner

    @property
    def id(self) -> str:
        return self._id

    @property
    def display_name(self) -> str:
        return self._display_name

    def initialize(self) -> None:
        """Look at the database. Raises ``BackendFailed`` when it, or a property, is not there."""
        self._schema()

    def shutdown(self) -> None:
        """Close idle connections."""
        self._rest.close()

    def create(self, draft: Draft) -> Record:
        """A new page."""
        body = {
            "parent": {"database_id": self._database},
            "properties": pages.of_draft(draft, self._names),
        }
        record = self._record(self._rest.json(Call("POST", "/pages", body=body)))
        if record is None:
            raise BackendFailed("The answer holds no page.", code="invalid_response")
        return record

    def get(self, record_id: str) -> Record | None:
        """None also for a page in the trash, or of another database."""
        return self._page(record_id)

    def update(self, record_id: str, changes: Changes) -> bool:
        """Set the properties that change."""
        if self._page(record_id) is None:
            return False
        properties = pages.of_changes(changes, self._names)
        return self._patch(record_id, {"properties": properties})

    def delete(self, record_id: str) -> bool:
        """Put the page into Notion's trash."""
        return self._page(record_id) is not None and self._patch(record_id, {"archived": True})

    def list_records(self, wanted: Filter) -> Page:
        """One page; all that match are read, because Notion counts none."""
        rule = self._narrowed(wanted)
        return page_of(self._query(rule), wanted)

    def search(self, wanted: Search) -> list[Record]:
        """Pages that hold a word of the query, those with most of the words first."""
        words = list(dict.fromkeys(wanted.query.split()))[: pages.MAX_WORDS]
        if not words:
            return []
        rule = self._narrowed(wanted)
        found = self._query([*rule, pages.holding(words, self._names)])
        return [replace(record, score=score) for score, record in best_of(found, wanted)]

    def health(self) -> Health:
        """Whether the database can be read and has the properties."""
        return checked(self._probed)

    def _probed(self) -> Facts:
        title = self._schema()
        path = f"/databases/{quote(self._database, safe='')}/query"
        call = Call("POST", path, body={"page_size": 1})
        _results(self._rest.json(call, patient=False))
        return {"database": title}

    def _schema(self) -> str:
        call = Call("GET", f"/databases/{quote(self._database, safe='')}")
        body = self._rest.send(call, patient=False)
        if body is None:
            told = "Notion knows no such database, or it is not shared with the integration."
            raise BackendFailed(told, code="not_found")
        answer = parsed(body)
        if missing := pages.missing(answer, self._names):
            told = f"The database lacks properties: {', '.join(missing)}."
            raise BackendFailed(told, code="not_found")
        return pages.title_of(answer)

    def _query(self, rule: list[dict[str, object]]) -> Iterator[Record]:
        path = f"/databases/{quote(self._database, safe='')}/query"
        body: dict[str, object] = {
            "page_size": PAGE_SIZE,
            "sorts": [{"timestamp": "created_time", "direction": "descending"}],
        }
        if rule:
            body["filter"] = {"and": rule}
        for _request in range(MAX_PAGES):
            answer = self._rest.json(Call("POST", path, body=body))
            for entry in _results(answer):
                if (record := self._record(entry)) is not None:
                    yield record
            following = answer.get("next_cursor") if isinstance(answer, dict) else None
            if not isinstance(following, str) or not following:
                return
            body["start_cursor"] = following

    def _page(self, record_id: str) -> Record | None:
        if not pages.is_id(record_id):
            return None
        body = self._rest.send(Call("GET", f"/pages/{record_id}"))
        if body is None:
            return None
        answer = parsed(body)
        is_ours = pages.parent_of(answer) == pages.bare(self._database)
        return self._record(answer) if is_ours else None

    def _record(self, answer: Json) -> Record | None:
        record = pages.to_record(answer, self._names)
        return record if record is None or record.owner else replace(record, owner=self._owner)

    def _narrowed(self, wanted: Filter | Search) -> list[dict[str, object]]:
        rule = pages.narrowed(wanted.type, wanted.session, self._names)
        if wanted.owner:
            with_nobody = wanted.owner == self._owner
            rule.append(pages.owned(wanted.owner, self._names, with_nobody=with_nobody))
        return rule

    def _patch(self, record_id: str, body: dict[str, object]) -> bool:
        return self._rest.send(Call("PATCH", f"/pages/{record_id}", body=body)) is not None


def _results(answer: Json) -> list[Json]:
    results = answer.get("results") if isinstance(answer, dict) else None
    if not isinstance(results, list):
        raise BackendFailed("The answer holds no list.", code="invalid_response")
    return results
