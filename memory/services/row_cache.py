"""Memories read by their id, kept in the process for a minute and never served stale.

Every read asks the database what the row is now, by one statement that is built once: that takes a
sixth of what building the statement and the object anew does. A kept object is only given when the
row it was made of is still the same, so whatever another process wrote counts at once.
"""

from __future__ import annotations

import copy
import threading
import time
import uuid
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from django.db import connection

from memory.models import ApiKey, Memory

LIFE_S: Final = 60.0
MOST: Final = 500
DROPPED: Final = 0.2
"""The share that goes, read longest ago first, when there are more than ``MOST``."""

_UNSEEN: Final = frozenset({"last_used_at"})
"""Columns of a key that change with each use and that no reader of a memory sees."""

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class CacheFigures:
    """Reads that were answered from the cache, those that were not, and what it holds."""

    hits: int
    misses: int
    size: int


@dataclass(frozen=True, slots=True)
class _Kept:
    row: Row
    until: float
    memory: Memory


class RowCache:
    """At most ``most`` memories, each for ``life_s`` seconds; safe between threads."""

    def __init__(
        self,
        *,
        most: int = MOST,
        life_s: float = LIFE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._most, self._life_s, self._clock = most, life_s, clock
        self._kept: OrderedDict[uuid.UUID, _Kept] = OrderedDict()
        self._hits: Counter[int | None] = Counter()
        self._misses: Counter[int | None] = Counter()
        self._lock = threading.Lock()

    def read(self, wanted: uuid.UUID, *, owner: int | None = None) -> Memory | None:
        """The memory with its key and its use as they are now, or None.

        Whose it is, the caller checks. The object is the caller's own. ``owner`` is whose figures
        count the read.
        """
        row = _row(wanted)
        found = self._same(wanted, row)
        with self._lock:
            (self._hits if found else self._misses)[owner] += 1
        if found is None and row is not None:
            found = Memory.objects.select_related("api_key", "use").filter(pk=wanted).first()
            if found is not None:
                self._keep(wanted, row, found)
        return None if found is None else _copied(found)

    def figures(self, owner: int | None = None) -> CacheFigures:
        """What was counted for an owner; without one, for all."""
        with self._lock:
            if owner is not None:
                return CacheFigures(self._hits[owner], self._misses[owner], len(self._kept))
            return CacheFigures(self._hits.total(), self._misses.total(), len(self._kept))

    def clear(self) -> None:
        """Forget everything, the figures too."""
        with self._lock:
            self._kept.clear()
            self._hits.clear()
            self._misses.clear()

    def _same(self, wanted: uuid.UUID, row: Row | None) -> Memory | None:
        with self._lock:
            kept = self._kept.get(wanted)
            if kept is None:
                return None
            if kept.row != row or kept.until <= self._clock():
                del self._kept[wanted]
                return None
            self._kept.move_to_end(wanted)
            return kept.memory

    def _keep(self, wanted: uuid.UUID, row: Row, memory: Memory) -> None:
        with self._lock:
            self._kept[wanted] = _Kept(row, self._clock() + self._life_s, memory)
            self._kept.move_to_end(wanted)
            if len(self._kept) > self._most:
                for _ in range(max(1, int(self._most * DROPPED))):
                    self._kept.popitem(last=False)


CACHE: Final = RowCache()
"""That of this process."""


@cache
def _statement() -> str:
    """What reads every column of a memory, those of its key that its readers see, and its use."""
    own = [field.attname for field in Memory._meta.concrete_fields]
    of_key = [field.attname for field in ApiKey._meta.concrete_fields]
    names = [
        *own,
        *(f"api_key__{name}" for name in of_key if name not in _UNSEEN),
        *("use__access_count", "use__last_accessed_at"),
    ]
    # Bare columns: whatever they are converted to, equal rows are equal.
    rows = Memory.objects.order_by().filter(pk=uuid.UUID(int=0)).values_list(*names)
    return str(rows.query.sql_with_params()[0])


def _row(wanted: uuid.UUID) -> Row | None:
    key = Memory._meta.pk.get_db_prep_value(wanted, connection, prepared=True)
    with connection.cursor() as cursor:
        cursor.execute(_statement(), [key])
        row: Row | None = cursor.fetchone()
    return row


def _copied(memory: Memory) -> Memory:
    """One that the caller may change."""
    made = copy.copy(memory)
    made.metadata = copy.deepcopy(memory.metadata)
    return made
