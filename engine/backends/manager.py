"""Which backend is asked, in which order (first seed, MemoryManager).

| operation | primary | fallbacks |
|---|---|---|
| create, list | only | never |
| get | first | in order, when the primary has nothing or fails |
| update, delete | only | told to follow afterwards, by their own ids |
| search | first | in order, when the primary fails; nothing found is an answer |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from engine.errors import BackendFailed
from engine.protocols import MemoryBackend
from engine.records import Changes, Draft, Filter, Page, Record, Search
from engine.types import Health


class IdMap(Protocol):
    """What each backend calls a memory, and what is still to be told to it."""

    def own_id(self, backend: str, memory_id: str) -> str | None:
        """The id of a memory in a backend; None when it is not there."""
        ...

    def follow(self, backend: str, memory_id: str, *, deleted: bool) -> None:
        """Have a backend follow a change later."""
        ...


@dataclass(frozen=True, slots=True)
class Answered:
    """Records, by whom they were found, and who failed before (id and error)."""

    records: Sequence[Record]
    backend: str | None
    failed: Sequence[tuple[str, BackendFailed]] = ()


class BackendManager:
    """The registered backends, one of them primary. Ids are those of our memories.

    Not for changing while it is used: register and configure first.
    """

    def __init__(self, ids: IdMap) -> None:
        self._ids = ids
        self._backends: dict[str, MemoryBackend] = {}
        self._primary = ""
        self._fallbacks: tuple[str, ...] = ()

    def register(self, backend: MemoryBackend) -> None:
        """Make a backend known under its id."""
        self._backends[backend.id] = backend

    def configure(self, primary: str, fallbacks: Sequence[str] = ()) -> None:
        """Choose who serves. Raises ``BackendFailed`` for one that is not registered."""
        for name in (primary, *fallbacks):
            if name not in self._backends:
                told = f"There is no memory backend “{name}”."
                raise BackendFailed(told, code="not_registered")
        self._primary = primary
        self._fallbacks = tuple(dict.fromkeys(name for name in fallbacks if name != primary))

    @property
    def primary(self) -> MemoryBackend:
        """The backend that holds the truth."""
        return self.backend(self._primary)

    @property
    def fallbacks(self) -> tuple[MemoryBackend, ...]:
        """The others, in order."""
        return tuple(self._backends[name] for name in self._fallbacks)

    def backend(self, name: str) -> MemoryBackend:
        """A backend by its id. Raises ``BackendFailed``."""
        found = self._backends.get(name)
        if found is None:
            raise BackendFailed("No memory backend is configured.", code="not_registered")
        return found

    def initialize(self) -> Mapping[str, str]:
        """Get every backend ready; what is wrong with those that are not, by id."""
        problems: dict[str, str] = {}
        for name, backend in self._backends.items():
            try:
                backend.initialize()
            except BackendFailed as error:
                problems[name] = str(error)
        return problems

    def shutdown(self) -> None:
        """Let go of every backend's connections."""
        for backend in self._backends.values():
            backend.shutdown()

    def create(self, draft: Draft) -> Record:
        """Store a memory at the primary. Raises ``BackendFailed``."""
        return self.primary.create(draft)

    def get(self, memory_id: str) -> tuple[str, Record] | None:
        """A memory and who had it; None when nobody has it.

        Raises the primary's failure when it failed and nobody else has it.
        """
        failure: BackendFailed | None = None
        for backend in (self.primary, *self.fallbacks):
            try:
                record = self._record(backend, memory_id)
            except BackendFailed as error:
                failure = failure or error
                continue
            if record is not None:
                return backend.id, record
        if failure is not None:
            raise failure
        return None

    def update(self, memory_id: str, changes: Changes) -> bool:
        """Change a memory at the primary; fallbacks follow. False when the primary has none."""
        own = self._ids.own_id(self._primary, memory_id)
        if own is None or not self.primary.update(own, changes):
            return False
        self._follow(memory_id, deleted=False)
        return True

    def delete(self, memory_id: str) -> bool:
        """Remove a memory from the primary; fallbacks follow, also when it had none."""
        own = self._ids.own_id(self._primary, memory_id)
        gone = own is not None and self.primary.delete(own)
        self._follow(memory_id, deleted=True)
        return gone

    def list_records(self, wanted: Filter) -> Page:
        """A page of the primary. Raises ``BackendFailed``."""
        return self.primary.list_records(wanted)

    def search(self, wanted: Search) -> Answered:
        """The answer of the first backend that does not fail; empty when all do."""
        failed: list[tuple[str, BackendFailed]] = []
        for backend in (self.primary, *self.fallbacks):
            try:
                return Answered(backend.search(wanted), backend.id, failed)
            except BackendFailed as error:
                failed.append((backend.id, error))
        return Answered((), None, failed)

    def health(self) -> dict[str, Health]:
        """The health of every backend, by id."""
        return {name: backend.health() for name, backend in self._backends.items()}

    def _record(self, backend: MemoryBackend, memory_id: str) -> Record | None:
        own = self._ids.own_id(backend.id, memory_id)
        return None if own is None else backend.get(own)

    def _follow(self, memory_id: str, *, deleted: bool) -> None:
        for name in self._fallbacks:
            if self._ids.own_id(name, memory_id) is not None:
                self._ids.follow(name, memory_id, deleted=deleted)
