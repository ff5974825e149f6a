"""Scope columns of passages as numpy arrays: what both in-process indexes filter by.

An index keeps what it searches (vectors, postings) beside a ``Table`` of the same rows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.uint8]
Codes = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]

NO_VAULT = -1
NEVER = np.iinfo(np.int64).max
"""Expiry of a passage that does not expire."""

SHARED, PINNED, ARCHIVED = 1, 2, 4

ScopeRecord = tuple[int, int, int, str, str, bool, bool, bool, int, int]
"""Passage id, owner, vault, session, type, shared, pinned, archived, retained, expires."""

SCOPE_WIDTH = 10
SCOPE_FIELDS = f"""
    p.id, p.owner_id, COALESCE(p.vault_id, {NO_VAULT}), p.session, p.type, p.is_shared,
    p.is_pinned, p.is_archived, p.retained_ms, COALESCE(p.expires_ms, {NEVER})"""
"""SQL of a ``ScopeRecord``, for a query that calls the passage table ``p``."""


@dataclass(frozen=True, slots=True)
class Table:
    """Arrays of equal length, one place for each row."""

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


def empty(capacity: int) -> Table:
    """Room for rows, none of them alive."""
    return Table(
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


def decode(
    records: Sequence[tuple[object, ...]], types: dict[str, int], sessions: dict[str, int]
) -> Table:
    """Live rows from records that begin with the fields of a ``ScopeRecord``.

    ``types`` and ``sessions`` learn the words they do not know.
    """
    if not records:
        return empty(0)
    fields = list(zip(*records, strict=True))
    passage, owner, vault, retained, expires = (
        np.array(fields[place], np.int64) for place in (0, 1, 2, 8, 9)
    )
    shared, pinned, archived = (np.array(fields[place], np.uint8) for place in (5, 6, 7))
    return Table(
        passage=passage,
        owner=owner,
        vault=vault,
        retained=retained,
        expires=expires,
        flags=shared * SHARED + pinned * PINNED + archived * ARCHIVED,
        type=_encode(fields[4], types),
        session=_encode(fields[3], sessions),
        alive=np.ones(len(records), np.bool_),
    )


def _encode(words: Collection[object], codes: dict[str, int]) -> Codes:
    return np.array([codes.setdefault(str(word), len(codes)) for word in words], np.int32)
