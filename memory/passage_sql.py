"""Where passages stand, out of the user-owned tables: a statement for each question."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any, Final, cast

from django.db import connection

from engine import scope_sql
from engine.database import POSTGRESQL, SQLITE, Dialect
from engine.types import Beside, Place, Scope

Session = tuple[int, str]
"""Owner and name of a session."""

_PLACES: Final = f"""
    SELECT p.id, p.language, p.owner_id, p.session, p.speaker, p.occurred_ms
    FROM {scope_sql.TABLE} p WHERE p.id {{among}}"""
_SESSIONS: Final = f"""
    SELECT DISTINCT p.owner_id, p.session FROM {scope_sql.TABLE} p
    WHERE p.id {{among}} AND NOT (p.session = '')"""
_USES: Final = f"""
    SELECT p.id, u.access_count FROM {scope_sql.TABLE} p
    JOIN memory_memoryuse u ON u.memory_id = p.memory_id WHERE p.id {{among}}"""
_SAME_MOMENT: Final = "n.occurred_ms = p.occurred_ms AND n.id"
_OTHER_MOMENT: Final = "n.occurred_ms"
_TURN: Final = f"""
    (SELECT n.id FROM {scope_sql.TABLE} n
    WHERE n.owner_id = p.owner_id AND n.session = p.session AND NOT (n.session = '')
    AND %s AND %s ORDER BY n.occurred_ms %s, n.id %s LIMIT 1)"""


def places(ids: Collection[int]) -> dict[int, Place]:
    """Language, session and time of passages."""
    return {row[0]: Place(*row[1:]) for row in _among(_PLACES, ids)}


def sessions(ids: Collection[int]) -> set[Session]:
    """The sessions that passages are turns of."""
    return {(row[0], row[1]) for row in _among(_SESSIONS, ids)}


def uses(ids: Collection[int]) -> dict[int, int]:
    """How often the memories of passages were retrieved."""
    return dict(_among(_USES, ids))


def visible(ids: Collection[int], scope: Scope) -> set[int]:
    """Those of some passages that a scope sees."""
    condition, params = scope_sql.where(scope, dialect=dialect())
    sql = f"SELECT p.id FROM {scope_sql.TABLE} p WHERE {condition} AND p.id {{among}}"
    return {row[0] for row in _among(sql, ids, params)}


def beside(ids: Collection[int], scope: Scope | None) -> dict[int, Beside]:
    """The passages before and after each, of the same session: those that a scope sees, or, without
    one, whatever is there."""
    seen: tuple[str, list[object]] = ("1 = 1", [])
    if scope is not None:
        seen = scope_sql.where(scope, alias="n", dialect=dialect())
    before, after = _next("<", "DESC", seen[0]), _next(">", "ASC", seen[0])
    sql = f"SELECT p.id, {before}, {after} FROM {scope_sql.TABLE} p WHERE p.id {{among}}"
    return {row[0]: (row[1], row[2]) for row in _among(sql, ids, seen[1] * 4)}


def _next(sign: str, direction: str, condition: str) -> str:
    """The next turn on one side. Two looks at the index, each of one step: SQLite compares pairs
    of columns by walking all turns of one moment."""
    looks = (
        _TURN % (f"{_SAME_MOMENT} {sign} p.id", condition, direction, direction),
        _TURN % (f"{_OTHER_MOMENT} {sign} p.occurred_ms", condition, direction, direction),
    )
    return f"COALESCE({', '.join(looks)})"


def _among(
    sql: str, ids: Collection[int], params: Sequence[object] = ()
) -> Sequence[tuple[Any, ...]]:
    """Rows of a statement that ends by naming passages: ``{among}``."""
    if not ids:
        return ()
    return rows(sql.replace("{among}", dialect().among), [*params, listed(ids)])


def dialect() -> Dialect:
    """That of the database."""
    return SQLITE if connection.vendor == "sqlite" else POSTGRESQL


def listed(ids: Collection[int]) -> str:
    """One value for all: databases limit how many a statement may carry."""
    return json.dumps(list(ids))


def rows(sql: str, params: Sequence[object]) -> list[tuple[Any, ...]]:
    """Rows of a statement with ``?`` placeholders."""
    with connection.cursor() as cursor:
        cursor.execute(sql.replace("%", "%%").replace("?", "%s"), cast(Any, list(params)))
        return cast(list[tuple[Any, ...]], cursor.fetchall())
