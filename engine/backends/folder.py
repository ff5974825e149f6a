"""A folder of Markdown files as a memory backend: an Obsidian vault without Obsidian."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from threading import Lock

from engine.backends import notes
from engine.backends.latency import checked
from engine.backends.note_names import name_for
from engine.backends.vault import Found, Vault
from engine.errors import BackendFailed
from engine.records import Changes, Draft, Filter, Page, Record, Search, best_of, page_of
from engine.types import Health

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """The present."""
    return datetime.now(UTC)


class FolderBackend:
    """Each note is a memory; its path in the folder is its id. Thread-safe within a process.

    Notes that name no owner are ``owner``'s.
    """

    def __init__(
        self,
        backend_id: str,
        display_name: str,
        vault: Vault,
        *,
        owner: str = "",
        clock: Clock = utc_now,
    ) -> None:
        self._id = backend_id
        self._display_name = display_name
        self._vault = vault
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
        """Look whether the folder can be written. Raises ``BackendFailed``."""
        self._vault.probe()

    def shutdown(self) -> None:
        """Nothing is held open."""

    def create(self, draft: Draft) -> Record:
        """A new note, named after the key; never over one that is there."""
        note = notes.of_draft(draft, self._clock())
        with self._writing:
            path = name_for(draft.key, draft.owner, self._vault.names())
            self._vault.write(path, notes.dump(note), must_exist=False)
        record = self.get(path)
        if record is None:
            raise BackendFailed("The note was written but is not there.")
        return record

    def get(self, record_id: str) -> Record | None:
        """Raises ``BackendFailed`` (``outside_vault``) for a path that would leave the folder."""
        found = self._vault.read(record_id)
        return None if found is None else self._record(found)

    def update(self, record_id: str, changes: Changes) -> bool:
        """Rewrite a note; front matter of others stays."""
        with self._writing:
            found = self._vault.read(record_id)
            if found is None:
                return False
            note = notes.changed(notes.parse(found.text), changes, self._clock())
            return self._vault.write(record_id, notes.dump(note), must_exist=True)

    def delete(self, record_id: str) -> bool:
        """Remove the file."""
        with self._writing:
            return self._vault.remove(record_id)

    def list_records(self, wanted: Filter) -> Page:
        """One page; every note is read for it."""
        return page_of(self._records(), wanted)

    def search(self, wanted: Search) -> list[Record]:
        """Notes that hold most of the words."""
        return [replace(record, score=score) for score, record in best_of(self._records(), wanted)]

    def health(self) -> Health:
        """Write and remove a file, and read what is there."""
        return checked(lambda: {"notes": self._vault.probe()})

    def _records(self) -> Iterator[Record]:
        try:
            for found in self._vault.walk():
                yield self._record(found)
        except FileNotFoundError:
            # The folder within the vault is made by the first note.
            return

    def _record(self, found: Found) -> Record:
        facts = notes.Facts(found.created, found.modified, self._owner)
        return notes.to_record(found.path, notes.parse(found.text), facts)
