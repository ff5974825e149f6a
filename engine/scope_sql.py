"""The scope columns every SQL index joins to, and the one WHERE clause that applies a Scope.

The table is the Django model ``memory.Passage`` in the product; an index that stands alone (a
sealed vault, a test) creates the same columns with ``CREATE_TABLE``.
"""

from __future__ import annotations

import json

from engine.types import Scope

TABLE = "memory_passage"
CHANGES = "memory_passagechange"
"""Change log: ``(id INTEGER PRIMARY KEY AUTOINCREMENT, passage_id)``; one row whenever a
passage, its scope or its vector changed. In-process indexes follow it."""

CREATE_TABLE = f"""
    CREATE TABLE IF NOT EXISTS {TABLE} (
        id INTEGER PRIMARY KEY, owner_id INTEGER NOT NULL, vault_id INTEGER, session TEXT NOT NULL,
        type TEXT NOT NULL, is_shared INTEGER NOT NULL, is_pinned INTEGER NOT NULL,
        is_archived INTEGER NOT NULL, retained_ms INTEGER NOT NULL, expires_ms INTEGER)"""
CREATE_CHANGES = f"""
    CREATE TABLE IF NOT EXISTS {CHANGES} (
        id INTEGER PRIMARY KEY AUTOINCREMENT, passage_id INTEGER NOT NULL)"""


def where(scope: Scope, *, alias: str = "p") -> tuple[str, list[object]]:
    """SQL condition (``?`` placeholders) and its parameters for the passages of a scope."""
    parts = [f"{alias}.is_archived = ?", f"({alias}.expires_ms IS NULL OR {alias}.expires_ms > ?)"]
    params: list[object] = [False, scope.now_ms]
    for condition, values in (_visible(scope, alias), _retained(scope, alias)):
        if condition:
            parts.append(condition)
            params.extend(values)
    if scope.session is not None:
        parts.append(f"{alias}.session = ?")
        params.append(scope.session)
    if scope.types:
        parts.append(_in(f"{alias}.type", len(scope.types)))
        params.extend(sorted(scope.types))
    if scope.excluded:
        parts.append(f"{alias}.id NOT IN (SELECT value FROM json_each(?))")
        params.append(json.dumps(sorted(scope.excluded)))
    return " AND ".join(parts), params


def _visible(scope: Scope, alias: str) -> tuple[str, list[object]]:
    if scope.owners is None and not scope.vaults:
        return f"{alias}.vault_id IS NULL", []
    choices: list[str] = []
    params: list[object] = []
    if scope.owners is None:
        choices.append(f"{alias}.vault_id IS NULL")
    elif scope.owners:
        choices.append(
            f"({alias}.vault_id IS NULL AND {_in(f'{alias}.owner_id', len(scope.owners))})"
        )
        params.extend(sorted(scope.owners))
    if scope.include_shared:
        choices.append(f"({alias}.vault_id IS NULL AND {alias}.is_shared = ?)")
        params.append(True)
    if scope.vaults:
        choices.append(_in(f"{alias}.vault_id", len(scope.vaults)))
        params.extend(sorted(scope.vaults))
    # A scope that names nobody matches nothing: filters fail closed.
    return (f"({' OR '.join(choices)})" if choices else "1 = 0"), params


def _retained(scope: Scope, alias: str) -> tuple[str, list[object]]:
    if not scope.retained_after_ms:
        return "", []
    limits = sorted(scope.retained_after_ms.items())
    cases = " ".join("WHEN ? THEN ?" for _ in limits)
    params: list[object] = [True]
    for memory_type, cutoff in limits:
        params.extend((memory_type.value, cutoff))
    return (
        f"({alias}.is_pinned = ? OR {alias}.retained_ms >= CASE {alias}.type {cases} ELSE 0 END)",
        params,
    )


def _in(column: str, size: int) -> str:
    return f"{column} IN ({', '.join('?' * size)})"
