"""Vectors and scope columns of an in-process index, as growing numpy arrays.

Rows are only ever appended or marked dead, never changed: a search works on the snapshot it took,
without a lock, while another thread appends. A changed passage is a dead row and a new one; the
dead are squeezed out when there are many.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from engine.types import Matrix

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.uint8]
Codes = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]

NO_VAULT = -1
NEVER = np.iinfo(np.int64).max
"""Expiry of a passage that does not expire."""

SHARED, PINNED, ARCHIVED = 1, 2, 4

FIRST_CAPACITY = 256
DEAD_SHARE = 4
"""Squeeze when more than one row in this many is dead."""
DEAD_ROWS = 1000

Record = tuple[int, int, int, str, str, bool, bool, bool, int, int, bytes]
"""Passage id, owner, vault, session, type, shared, pinned, archived, retained, expires, vector."""


@dataclass(frozen=True, slots=True)
class Table:
    """Arrays of equal length, one place for each row."""

    matrix: Matrix
    passage: Ints
    owner: Ints
    vault: Ints
    retained: Ints
    expires: Ints
    flags: Flags
    type: Codes
    session: Codes
    alive: Mask

    def __len__(self) -> int:
        return int(self.passage.size)

    def part(self, rows: slice | Ints) -> Table:
        """The same columns for some rows: views for a slice, copies for row numbers."""
        return Table(
            matrix=self.matrix[rows],
            passage=self.passage[rows],
            owner=self.owner[rows],
            vault=self.vault[rows],
            retained=self.retained[rows],
            expires=self.expires[rows],
            flags=self.flags[rows],
            type=self.type[rows],
            session=self.session[rows],
            alive=self.alive[rows],
        )

    def columns(self) -> tuple[npt.NDArray[np.generic], ...]:
        """Every column, in the order of the fields."""
        return tuple(getattr(self, name) for name in self.__slots__)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What one search sees. ``types`` and ``sessions`` give the codes of those columns."""

    table: Table
    types: Mapping[str, int]
    sessions: Mapping[str, int]


class Columns:
    """The rows of an index. One writer at a time; the caller holds the lock."""

    def __init__(self, dim: int, expected: int = 0) -> None:
        """``expected`` rows get their place at once, with an eighth to spare."""
        self._dim = dim
        self._size = 0
        self._dead = 0
        self._table = _empty(dim, max(FIRST_CAPACITY, expected + expected // 8))
        self._row_of: dict[int, int] = {}
        self._types: dict[str, int] = {}
        self._sessions: dict[str, int] = {}

    def __len__(self) -> int:
        return self._size - self._dead

    @property
    def nbytes(self) -> int:
        """Memory of the arrays."""
        return sum(column.nbytes for column in self._table.columns())

    def snapshot(self) -> Snapshot:
        """The rows as they are now."""
        seen = self._table.part(slice(self._size))
        # A copy: a row that dies during a search still counts for it, since the row that takes its
        # place came too late to be seen.
        seen = replace(seen, alive=seen.alive.copy())
        return Snapshot(seen, self._types, self._sessions)

    def remove(self, passage_ids: Iterable[int]) -> None:
        """Mark the rows of passages dead; unknown ids are fine."""
        for passage_id in passage_ids:
            row = self._row_of.pop(passage_id, None)
            if row is not None:
                self._table.alive[row] = False
                self._dead += 1

    def put(self, records: Sequence[Record]) -> None:
        """Add passages, in place of older rows of the same ids."""
        if not records:
            return
        added = self._decode(records)
        self.remove(added.passage.tolist())
        start, end = self._size, self._size + len(added)
        self._reserve(end)
        for column, values in zip(self._table.columns(), added.columns(), strict=True):
            column[start:end] = values
        self._size = end
        self._row_of.update(zip(added.passage.tolist(), range(start, end), strict=True))
        if self._dead > max(DEAD_ROWS, self._size // DEAD_SHARE):
            self._squeeze()

    def _decode(self, records: Sequence[Record]) -> Table:
        fields = list(zip(*records, strict=True))
        passage, owner, vault, retained, expires = (
            np.array(fields[place], np.int64) for place in (0, 1, 2, 8, 9)
        )
        shared, pinned, archived = (np.array(fields[place], np.uint8) for place in (5, 6, 7))
        matrix = np.frombuffer(b"".join(fields[10]), "<f4").reshape(-1, self._dim)
        return Table(
            matrix=matrix.astype(np.float32, copy=False),
            passage=passage,
            owner=owner,
            vault=vault,
            retained=retained,
            expires=expires,
            flags=shared * SHARED + pinned * PINNED + archived * ARCHIVED,
            type=_encode(fields[4], self._types),
            session=_encode(fields[3], self._sessions),
            alive=np.ones(len(records), np.bool_),
        )

    def _reserve(self, size: int) -> None:
        if size <= len(self._table):
            return
        larger = _empty(self._dim, max(size, 2 * len(self._table)))
        for old, new in zip(self._table.columns(), larger.columns(), strict=True):
            new[: self._size] = old[: self._size]
        self._table = larger

    def _squeeze(self) -> None:
        kept = np.flatnonzero(self._table.alive[: self._size])
        self._table = self._table.part(kept)
        self._size, self._dead = len(kept), 0
        self._row_of = dict(zip(self._table.passage.tolist(), range(self._size), strict=True))


def _empty(dim: int, capacity: int) -> Table:
    return Table(
        matrix=np.empty((capacity, dim), np.float32),
        passage=np.zeros(capacity, np.int64),
        owner=np.zeros(capacity, np.int64),
        vault=np.zeros(capacity, np.int64),
        retained=np.zeros(capacity, np.int64),
        expires=np.zeros(capacity, np.int64),
        flags=np.zeros(capacity, np.uint8),
        type=np.zeros(capacity, np.int32),
        session=np.zeros(capacity, np.int32),
        alive=np.zeros(capacity, np.bool_),
    )


def _encode(words: Collection[str], codes: dict[str, int]) -> Codes:
    return np.array([codes.setdefault(word, len(codes)) for word in words], np.int32)
