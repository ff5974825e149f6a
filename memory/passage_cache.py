"""What was read of passages lately, kept by each process for as long as the change log is silent.

A chat mostly looks for what the chat before it looked for. Nothing is kept of what a transaction
sees before it is committed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from django.db import connection

from engine.columns import change_log
from engine.database import dialect_of, in_transaction
from engine.protocols import DatabaseConnection
from engine.types import Beside, Passage, Place
from memory import passage_sql
from memory.models import Memory
from memory.passage_sql import Session

T = TypeVar("T")

_COLUMNS: Final = [field.attname for field in Memory._meta.concrete_fields]
_METADATA: Final = _COLUMNS.index("metadata")

MOST_PLACES: Final = 50_000
MOST_TEXTS: Final = 2000
MANY: Final = 1000
"""After so many changes at once everything is forgotten, which is quicker than looking."""


@dataclass(frozen=True, slots=True)
class Text:
    """A passage, and the columns of its memory."""

    passage: Passage
    columns: Sequence[Any]

    @classmethod
    def of(cls, passage: Passage, memory: Memory) -> Text:
        """A passage that was read with its memory."""
        return cls(passage, _own([getattr(memory, name) for name in _COLUMNS]))

    def memory(self) -> Memory:
        """The memory, made anew each time: who is given it may change it."""
        return Memory.from_db(connection.alias, _COLUMNS, _own(self.columns))


def _own(columns: Sequence[Any]) -> list[Any]:
    """Values that nobody else can change: only metadata can be."""
    return [*columns[:_METADATA], deepcopy(columns[_METADATA]), *columns[_METADATA + 1 :]]


class PassageCache:
    """Thread-safe. What is handed in must have been read after ``follow`` gave the version."""

    def __init__(self, connect: Callable[[], DatabaseConnection]) -> None:
        self._connect = connect
        self._lock = threading.Lock()
        self._seen: int | None = None
        self._version = 0
        self._places: dict[int, Place] = {}
        self._beside: dict[int, Beside] = {}
        self._turns: dict[Session, set[int]] = {}
        self._texts: dict[int, Text] = {}

    def follow(self) -> int | None:
        """Forget what has changed. The version that is reached, or None inside a transaction: then
        nothing of this may be used or kept."""
        database = self._connect()
        if in_transaction(database):
            return None
        with self._lock:
            self._follow(database)
            return self._version

    def places(self, ids: Collection[int]) -> dict[int, Place]:
        """The known ones of some places."""
        return _known(self._places, ids)

    def beside(self, ids: Collection[int]) -> dict[int, Beside]:
        """The known ones of some pairs of neighbours, whoever may see these."""
        return _known(self._beside, ids)

    def texts(self, ids: Collection[int]) -> dict[int, Text]:
        """The known ones of some texts."""
        return _known(self._texts, ids)

    def keep_places(self, version: int, places: Mapping[int, Place]) -> None:
        """Keep places that were read."""
        with self._lock:
            if version == self._version:
                self._make_room(len(self._places) + len(places))
                self._places.update(places)

    def keep_beside(self, version: int, beside: Mapping[int, Beside]) -> None:
        """Keep neighbours that were read; of passages whose places are kept."""
        with self._lock:
            if version != self._version:
                return
            for key, pair in beside.items():
                if (place := self._places.get(key)) is not None:
                    self._beside[key] = pair
                    self._turns.setdefault((place.owner, place.session), set()).add(key)

    def keep_texts(self, version: int, texts: Mapping[int, Text]) -> None:
        """Keep texts that were read."""
        with self._lock:
            if version == self._version:
                if len(self._texts) + len(texts) > MOST_TEXTS:
                    self._texts = {}
                self._texts.update(texts)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._clear()
            self._seen = None

    def _follow(self, database: DatabaseConnection) -> None:
        low, high = change_log.bounds(database)
        seen, self._seen = self._seen, high
        if seen is None or high < seen or low > seen + 1:
            self._clear()
        elif high != seen or not dialect_of(database).is_serial:
            self._forget(change_log.changed(database, seen, high))

    def _forget(self, changed: set[int]) -> None:
        if len(changed) > MANY:
            self._clear()
        elif changed:
            self._version += 1
            # A turn that came into a session has neighbours there; so had one that left it.
            touched = passage_sql.sessions(changed)
            for key in changed:
                self._texts.pop(key, None)
                if (place := self._places.pop(key, None)) is not None:
                    touched.add((place.owner, place.session))
            for session in touched:
                for key in self._turns.pop(session, ()):
                    self._beside.pop(key, None)

    def _make_room(self, wanted: int) -> None:
        # All at once: neighbours are only kept of places that are kept.
        if wanted > MOST_PLACES:
            self._places, self._beside, self._turns = {}, {}, {}

    def _clear(self) -> None:
        self._version += 1
        self._places, self._beside, self._turns, self._texts = {}, {}, {}, {}


def _known(kept: Mapping[int, T], ids: Collection[int]) -> dict[int, T]:
    # Another thread may forget meanwhile.
    return {key: value for key in ids if (value := kept.get(key)) is not None}
