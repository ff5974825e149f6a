"""Reads passages out of the user-owned tables for the engine."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, cast

from django.db import connection

from engine import scope_sql
from engine.text.template import indexed_text
from engine.types import MemoryType, Passage, PassageKind, Scope
from memory.models import Memory
from memory.models import Passage as PassageRow


class PassageReader:
    """The engine's ``PassageSource`` over the ORM; remembers the memories it has read."""

    def __init__(self) -> None:
        self.memories: dict[str, Memory] = {}

    def load(self, ids: Collection[int]) -> Mapping[int, Passage]:
        """Passages by id, in one query."""
        rows = PassageRow.objects.filter(pk__in=list(ids)).select_related("memory__api_key")
        found: dict[int, Passage] = {}
        for row in rows:
            if row.memory is not None:
                found[row.pk] = to_engine(row, row.memory)
                self.memories[str(row.memory.pk)] = row.memory
        return found

    def recent(self, scope: Scope, limit: int) -> list[int]:
        """First passages of the newest memories within the scope, newest first."""
        condition, params = scope_sql.where(scope)
        sql = f"""
            SELECT p.id FROM {scope_sql.TABLE} p
            WHERE p.ordinal = 0 AND {condition} ORDER BY p.created_ms DESC, p.id DESC LIMIT ?"""
        sql = sql.replace("%", "%%").replace("?", "%s")
        with connection.cursor() as cursor:
            cursor.execute(sql, cast(Any, [*params, limit]))
            return [row[0] for row in cursor.fetchall()]


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


def all_to_engine(rows: Iterable[PassageRow]) -> list[Passage]:
    """The engine's view of rows whose memory is already loaded."""
    return [to_engine(row, row.memory) for row in rows if row.memory is not None]
