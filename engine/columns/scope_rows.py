"""Which rows of a snapshot a scope may see: ``engine.scope_sql.where``, for arrays."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from engine.columns.table import ARCHIVED, NO_VAULT, PINNED, SHARED, Ints, Mask, Snapshot, Table
from engine.types import Scope

EVERY = slice(None)


def visible(snapshot: Snapshot, scope: Scope, among: Ints | None = None) -> Ints:
    """Row numbers within the scope, ascending; of those in ``among`` when it is given.

    The owner is looked at first, on whole columns; what is left is narrowed step by step, so that
    a small owner beside a huge one costs little.
    """
    table = snapshot.table
    if among is None:
        rows = np.flatnonzero(_readable(table, scope) & table.alive)
    else:
        rows = among[_readable(table, scope, among) & table.alive[among]]
    rows = rows[(table.flags[rows] & ARCHIVED) == 0]
    rows = rows[table.expires[rows] > scope.now_ms]
    rows = _retained(snapshot, scope, rows)
    if scope.session is not None:
        code = snapshot.sessions.get(scope.session, -1)
        rows = rows[table.session[rows] == code]
    if scope.types:
        codes = [snapshot.types.get(memory_type.value, -1) for memory_type in scope.types]
        rows = rows[np.isin(table.type[rows], codes)]
    if scope.only is not None:
        rows = rows[np.isin(table.passage[rows], _array(scope.only))]
    if scope.excluded:
        rows = rows[~np.isin(table.passage[rows], _array(scope.excluded))]
    return rows


def _readable(table: Table, scope: Scope, rows: slice | Ints = EVERY) -> Mask:
    """Owner, shared or vault: one is enough; a scope that names nobody sees nothing."""
    vault = table.vault[rows]
    if scope.owners is None:
        seen: Mask = vault == NO_VAULT
    else:
        seen = np.zeros(vault.size, np.bool_)
        if scope.owners:
            seen |= _among(table.owner[rows], scope.owners)
        if scope.include_shared:
            seen |= (table.flags[rows] & SHARED) != 0
        seen &= vault == NO_VAULT
    if scope.vaults:
        seen |= _among(vault, scope.vaults)
    return seen


def _retained(snapshot: Snapshot, scope: Scope, rows: Ints) -> Ints:
    if not scope.retained_after_ms:
        return rows
    table = snapshot.table
    cutoffs = np.zeros(len(snapshot.types) + 1, np.int64)
    for memory_type, cutoff in scope.retained_after_ms.items():
        code = snapshot.types.get(memory_type.value)
        if code is not None:
            cutoffs[code] = cutoff
    kept = table.retained[rows] >= cutoffs[table.type[rows]]
    kept |= (table.flags[rows] & PINNED) != 0
    within: Ints = rows[kept]
    return within


def _among(column: Ints, wanted: frozenset[int]) -> Mask:
    if len(wanted) == 1:
        mask: Mask = column == next(iter(wanted))
        return mask
    return np.isin(column, _array(wanted))


def _array(values: Iterable[int]) -> Ints:
    return np.fromiter(values, np.int64)
