"""An open Obsidian as a memory backend, through its plugin Local REST API.

The plugin answers on loopback: ``GET /`` (who am I), ``/vault/<path>`` (list, read, write, delete)
and ``POST /search/simple/``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from threading import Lock
from typing import Final
from urllib.parse import quote

from engine.backends import notes
from engine.backends.folder import Clock, utc_now
from engine.backends.latency import Facts, checked
from engine.backends.note_names import MAX_DEPTH, SUFFIX, check, check_folder, folded, name_for
from engine.backends.rest import Call, Rest, parsed
from engine.errors import BackendFailed
from engine.net.strict_json import Json
from engine.records import (
    Changes,
    Draft,
    Filter,
    Page,
    Record,
    Search,
    matches,
    page_of,
)
from engine.types import Health

NOTE: Final = "application/vnd.olrapi.note+json"
MAX_NOTES: Final = 5_000
"""Notes read for one list: each costs a request."""
CANDIDATES: Final = 200


class ObsidianBackend:
    """Each note below ``folder`` is a memory; its path in that folder is its id. Thread-safe.

    Notes that name no owner are ``owner``'s.
    """

    def __init__(
        self,
        backend_id: str,
        display_name: str,
        rest: Rest,
        folder: str = "",
        *,
        owner: str = "",
        clock: Clock = utc_now,
    ) -> None:
        self._id = backend_id
        self._display_name = display_name
        self._rest = rest
        self._folder = check_folder(folder)
        self._owner = owner
        self._clock = clock
        self._writing = Lock()

    @property
    def id(self) -> str:
        return self._id

    @property
    def display_name(self) -> str:
        return self._display_name

    def initialize(self) -> None:
        """Ask who we are. Raises ``BackendFailed``, with ``no_key`` when the key is not ours."""
        self._known()

    def shutdown(self) -> None:
        """Close idle connections."""
        self._rest.close()

    def create(self, draft: Draft) -> Record:
        """A new note, named after the key; never over one that is there."""
        note = notes.of_draft(draft, self._clock())
        with self._writing:
            taken = {folded(name) for name in self._files(())}
            path = name_for(draft.key, draft.owner, taken)
            self._put(path, note)
        record = self.get(path)
        if record is None:
            raise BackendFailed("The note was written but is not there.")
        return record

    def get(self, record_id: str) -> Record | None:
        """Raises ``BackendFailed`` (``outside_vault``) for a path that would leave the folder."""
        answer = self._note(record_id)
        return None if answer is None else self._record(record_id, answer)

    def update(self, record_id: str, changes: Changes) -> bool:
        """Rewrite a note; front matter of others stays."""
        with self._writing:
            answer = self._note(record_id)
            if answer is None:
                return False
            note = notes.parse(_content(answer))
            self._put(record_id, notes.changed(note, changes, self._clock()))
        return True

    def delete(self, record_id: str) -> bool:
        """Remove the note, as Obsidian is set up to."""
        return self._rest.send(Call("DELETE", self._path(check(record_id)))) is not None

    def list_records(self, wanted: Filter) -> Page:
        """One page; every note is read for it."""
        return page_of(self._records(), wanted)

    def search(self, wanted: Search) -> list[Record]:
        """Obsidian's own simple search, narrowed to owner, type and session by what notes say."""
        query = {"query": wanted.query, "contextLength": "0"}
        answer = self._rest.json(Call("POST", "/search/simple/", query))
        if not isinstance(answer, list):
            raise BackendFailed("The answer holds no list.", code="invalid_response")
        narrowed = Filter(owner=wanted.owner, type=wanted.type, session=wanted.session)
        found: list[Record] = []
        for path, score in self._hits(answer):
            record = self.get(path)
            if record is not None and matches(record, narrowed):
                found.append(replace(record, score=score))
            if len(found) >= wanted.limit:
                break
        return found

    def health(self) -> Health:
        """Whether the key is known, and the folder can be listed."""
        return checked(self._probed)

    def _probed(self) -> Facts:
        version = self._known()
        return {"notes_here": len(self._files((), patient=False)), "version": version}

    def _known(self) -> str:
        answer = self._rest.json(Call("GET", "/"), patient=False)
        if not isinstance(answer, dict) or answer.get("status") != "OK":
            told = "This is not the Local REST API of Obsidian."
            raise BackendFailed(told, code="invalid_response")
        if answer.get("authenticated") is not True:
            raise BackendFailed("Obsidian does not know the key.", code="no_key")
        versions = answer.get("versions")
        return str(versions.get("self", "")) if isinstance(versions, dict) else ""

    def _hits(self, answer: list[Json]) -> Iterator[tuple[str, float]]:
        """Paths in our folder, best first. Obsidian's scores are better the higher they are."""
        prefix = "".join(f"{part}/" for part in self._folder)
        hits: list[tuple[float, str]] = []
        for entry in answer:
            name = entry.get("filename") if isinstance(entry, dict) else None
            score = entry.get("score") if isinstance(entry, dict) else None
            if isinstance(name, str) and name.startswith(prefix) and name.endswith(SUFFIX):
                value = float(score) if isinstance(score, int | float) else 0.0
                hits.append((-value, name.removeprefix(prefix)))
        for value, path in sorted(hits)[:CANDIDATES]:
            with suppress(BackendFailed):
                check(path)
                yield path, -value

    def _records(self) -> Iterator[Record]:
        for path in islice(self._walk(()), MAX_NOTES):
            if (record := self.get(path)) is not None:
                yield record

    def _walk(self, parts: tuple[str, ...]) -> Iterator[str]:
        """Paths of all notes below a folder."""
        for name in sorted(self._files(parts)):
            if name.startswith("."):
                continue
            if name.endswith("/"):
                if len(parts) < MAX_DEPTH:
                    yield from self._walk((*parts, name.rstrip("/")))
            elif name.endswith(SUFFIX):
                with suppress(BackendFailed):
                    yield "/".join(check("/".join((*parts, name))))

    def _files(self, parts: tuple[str, ...], *, patient: bool = True) -> list[str]:
        """Names in a folder; those of folders end with ``/``. Obsidian knows no empty folder."""
        body = self._rest.send(Call("GET", self._path(parts) + "/"), patient=patient)
        if body is None:
            return []
        answer = parsed(body)
        files = answer.get("files") if isinstance(answer, dict) else None
        if not isinstance(files, list):
            raise BackendFailed("The answer holds no list of files.", code="invalid_response")
        return [name for name in files if isinstance(name, str)]

    def _note(self, record_id: str) -> Mapping[str, Json] | None:
        body = self._rest.send(Call("GET", self._path(check(record_id)), accept=NOTE))
        if body is None:
            return None
        answer = parsed(body)
        if not isinstance(answer, dict):
            raise BackendFailed("The answer holds no note.", code="invalid_response")
        return answer

    def _put(self, path: str, note: notes.Note) -> None:
        call = Call("PUT", self._path(check(path)), text=notes.dump(note))
        if self._rest.send(call) is None:
            raise BackendFailed("Obsidian does not take the note.", code="not_found")

    def _record(self, path: str, answer: Mapping[str, Json]) -> Record:
        stat = answer.get("stat")
        times = stat if isinstance(stat, dict) else {}
        created, modified = _seconds(times.get("ctime")), _seconds(times.get("mtime"))
        facts = notes.Facts(created, modified, self._owner)
        return notes.to_record(path, notes.parse(_content(answer)), facts)

    def _path(self, parts: tuple[str, ...]) -> str:
        return "/".join(("/vault", *(quote(part, safe="") for part in (*self._folder, *parts))))


def _content(answer: Mapping[str, Json]) -> str:
    content = answer.get("content")
    if not isinstance(content, str):
        raise BackendFailed("The answer holds no note.", code="invalid_response")
    return content


def _seconds(value: Json) -> float | None:
    return value / 1000 if isinstance(value, int | float) and 0 < value < 1e14 else None
