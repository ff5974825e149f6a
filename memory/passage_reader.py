"""Reads passages out of the user-owned tables for the engine."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, cast

from django.db import connection

from engine import scope_sql
from engine.database import POSTGRESQL, SQLITE, Dialect
from engine.text.template import indexed_text
from engine.types import MemoryType, Passage, PassageKind, Place, Scope
from engine.vault.index import IndexedChunk
from memory.models import ApiKey, Memory, VaultChunk
from memory.models import Passage as PassageRow


class PassageReader:
    """The engine's ``PassageSource`` over the ORM; remembers the memories and chunks it read."""

    def __init__(self) -> None:
        self.memories: dict[str, Memory] = {}
        self.chunks: dict[int, IndexedChunk] = {}
        self._keys: dict[int, ApiKey] = {}

    def load(self, ids: Collection[int]) -> Mapping[int, Passage]:
        """Passages by id. Keys are few, so they are read once rather than beside every row."""
        rows = list(PassageRow.objects.filter(pk__in=list(ids)).select_related("memory"))
        unread = {row.owner_id for row in rows} - self._keys.keys()
        self._keys.update(ApiKey.objects.in_bulk(list(unread)) if unread else {})
        found: dict[int, Passage] = {}
        for row in rows:
            if row.memory is not None and row.owner_id in self._keys:
                row.memory.api_key = self._keys[row.owner_id]
                found[row.pk] = to_engine(row, row.memory)
                self.memories[str(row.memory.pk)] = row.memory
        if chunks := [row for row in rows if row.asset_id is not None]:
            found.update(self._load_chunks(chunks))
        return found

    def _load_chunks(self, rows: Sequence[PassageRow]) -> Mapping[int, Passage]:
        """Passages of vaults, whose texts lie beside them; as values, since there may be many."""
        by_id = {row.pk: row for row in rows}
        read = VaultChunk.objects.filter(pk__in=list(by_id)).values_list(*_CHUNK).order_by()
        for key, text, start, end, sha256, title, meta, revision in read:
            passage = _of_vault(by_id[key], title, text, meta)
            kind = str(passage.kind)
            self.chunks[key] = IndexedChunk(passage, revision, kind, start, end, sha256)
        return {key: self.chunks[key].passage for key in by_id if key in self.chunks}

    def recent(self, scope: Scope, limit: int) -> list[int]:
        """First passages of the newest memories within the scope, newest first."""
        condition, params = scope_sql.where(scope, dialect=_dialect())
        sql = f"""
            SELECT p.id FROM {scope_sql.TABLE} p
            WHERE p.ordinal = 0 AND {condition} ORDER BY p.created_ms DESC, p.id DESC LIMIT ?"""
        return [row[0] for row in _rows(sql, [*params, limit])]

    def firsts(self, parents: Collection[str], scope: Scope) -> dict[str, int]:
        """First passages of memories, by the memory's id, of those that are within the scope."""
        condition, params = scope_sql.where(scope, dialect=_dialect())
        within = (
            f"SELECT p.id FROM {scope_sql.TABLE} p WHERE {condition} AND p.id {_dialect().among}"
        )
        rows = PassageRow.objects.filter(memory__in=list(parents), ordinal=0)
        ids = {pk: str(parent) for pk, parent in rows.values_list("pk", "memory_id")}
        found = _rows(within, [*params, _listed(ids)]) if ids else []
        return {ids[row[0]]: row[0] for row in found}

    def places(
        self, ids: Collection[int], scope: Scope, *, with_turns: bool = True
    ) -> Mapping[int, Place]:
        """Language, turn and uses of passages, in two queries; neighbours are within the scope."""
        if not ids:
            return {}
        found = {
            row[0]: row[1:]
            for row in _rows(_PLACES.replace("{among}", _dialect().among), [_listed(ids)])
        }
        talked = [key for key, row in found.items() if row[2]] if with_turns else []
        turns = _turns(talked, scope)
        return {key: Place(*row, *turns.get(key, ())) for key, row in found.items()}

    def dated(self, scope: Scope, start_ms: int, end_ms: int, limit: int) -> list[int]:
        """Passages within the scope that happened from ``start_ms`` to before ``end_ms``."""
        condition, params = scope_sql.where(scope, dialect=_dialect())
        sql = f"""
            SELECT p.id FROM {scope_sql.TABLE} p
            WHERE p.occurred_ms >= ? AND p.occurred_ms < ? AND {condition}
            ORDER BY p.occurred_ms DESC, p.id DESC LIMIT ?"""
        return [row[0] for row in _rows(sql, [start_ms, end_ms, *params, limit])]


_CHUNK: Final = (
    "pk",
    "text",
    "byte_start",
    "byte_end",
    "sha256",
    "passage__asset__title",
    "passage__asset__meta",
    "passage__asset__revision",
)
_PLACES: Final = f"""
    SELECT p.id, p.language, p.owner_id, p.session, p.speaker, p.occurred_ms,
        COALESCE(u.access_count, 0)
    FROM {scope_sql.TABLE} p LEFT JOIN memory_memoryuse u ON u.memory_id = p.memory_id
    WHERE p.id {{among}}"""
_SAME_MOMENT: Final = "n.occurred_ms = p.occurred_ms AND n.id"
_OTHER_MOMENT: Final = "n.occurred_ms"
_TURN: Final = f"""
    (SELECT n.id FROM {scope_sql.TABLE} n
    WHERE n.owner_id = p.owner_id AND n.session = p.session AND NOT (n.session = '')
    AND %s AND %s ORDER BY n.occurred_ms %s, n.id %s LIMIT 1)"""


def _turns(ids: Collection[int], scope: Scope) -> dict[int, tuple[int | None, int | None]]:
    """The passages before and after each, of the same session and within the scope."""
    if not ids:
        return {}
    condition, params = scope_sql.where(scope, alias="n", dialect=_dialect())
    before, after = _beside("<", "DESC", condition), _beside(">", "ASC", condition)
    among = _dialect().among
    sql = f"SELECT p.id, {before}, {after} FROM {scope_sql.TABLE} p WHERE p.id {among}"
    return {row[0]: (row[1], row[2]) for row in _rows(sql, [*params * 4, _listed(ids)])}


def _beside(sign: str, direction: str, condition: str) -> str:
    """The next turn on one side. Two looks at the index, each of one step: SQLite compares pairs
    of columns by walking all turns of one moment."""
    looks = (
        _TURN % (f"{_SAME_MOMENT} {sign} p.id", condition, direction, direction),
        _TURN % (f"{_OTHER_MOMENT} {sign} p.occurred_ms", condition, direction, direction),
    )
    return f"COALESCE({', '.join(looks)})"


def _dialect() -> Dialect:
    return SQLITE if connection.vendor == "sqlite" else POSTGRESQL


def _listed(ids: Collection[int]) -> str:
    # One value for all: databases limit how many a statement may carry.
    return json.dumps(list(ids))


def _rows(sql: str, params: Sequence[object]) -> list[tuple[Any, ...]]:
    """Rows of a statement with ``?`` placeholders."""
    with connection.cursor() as cursor:
        cursor.execute(sql.replace("%", "%%").replace("?", "%s"), cast(Any, list(params)))
        return cast(list[tuple[Any, ...]], cursor.fetchall())


def to_engine(row: PassageRow, memory: Memory) -> Passage:
    """The engine's view of a passage row and the memory it is a piece of."""
    text = indexed_text(memory.key, memory.metadata)
    prefix = text.body_prefix if row.ordinal == 0 else ""
    return Passage(
        id=row.pk,
        kind=PassageKind(row.kind),
        parent=str(memory.pk),
        ordinal=row.ordinal,
        owner=row.owner_id,
        title=text.title,
        body=prefix + memory.content[row.start : row.end],
        meta=text.meta,
        text_hash=row.text_hash,
        parent_tokens=memory.tokens,
        type=MemoryType(row.type),
        vault=row.vault_id,
        session=row.session,
        created_ms=row.created_ms,
        retained_ms=row.retained_ms,
        expires_ms=row.expires_ms,
        is_pinned=row.is_pinned,
        is_shared=row.is_shared,
        is_archived=row.is_archived,
    )


def _of_vault(row: PassageRow, title: str, text: str, meta: Mapping[str, Any]) -> Passage:
    """The engine's view of a passage row of a vault; title and metadata are those of the asset."""
    return Passage(
        id=row.pk,
        kind=PassageKind(row.kind),
        parent=str(row.asset_id),
        ordinal=row.ordinal,
        owner=row.owner_id,
        title=title,
        body=text,
        meta=indexed_text("", meta.get("meta", {})).meta,
        text_hash=row.text_hash,
        parent_tokens=0,
        vault=row.vault_id,
        created_ms=row.created_ms,
        retained_ms=row.retained_ms,
    )


def all_to_engine(rows: Iterable[PassageRow]) -> list[Passage]:
    """The engine's view of rows whose memory, or asset and chunk, is already loaded."""
    found: list[Passage] = []
    for row in rows:
        if row.memory is not None:
            found.append(to_engine(row, row.memory))
        elif row.asset is not None:
            found.append(_of_vault(row, row.asset.title, row.chunk.text, row.asset.meta))
    return found
