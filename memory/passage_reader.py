"""Reads passages out of the user-owned tables for the engine."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, TypeVar

from engine import scope_sql
from engine.text.template import indexed_text
from engine.types import Beside, MemoryType, Passage, PassageKind, Place, Scope
from engine.vault.index import IndexedChunk
from memory import passage_sql
from memory.models import ApiKey, Memory, VaultChunk
from memory.models import Passage as PassageRow
from memory.passage_cache import PassageCache, Text

T = TypeVar("T")


class PassageReader:
    """The engine's ``PassageSource`` over the ORM; remembers the memories and chunks it read.

    With a cache it serves one retrieval, and reads nothing again that has not changed. ``keys``
    are owners that were read already.
    """

    def __init__(self, cache: PassageCache | None = None, *, keys: Iterable[ApiKey] = ()) -> None:
        self.memories: dict[str, Memory] = {}
        self.chunks: dict[int, IndexedChunk] = {}
        self._keys = {key.pk: key for key in keys}
        self._cache = cache

    @cached_property
    def _version(self) -> int | None:
        """What of the cache holds; asked when the lists of the retrieval are there."""
        return self._cache.follow() if self._cache is not None else None

    def load(self, ids: Collection[int]) -> Mapping[int, Passage]:
        """Passages by id. Keys are few, so they are read once rather than beside every row."""
        known = self._known(PassageCache.texts, ids)
        rows = _rows_of([key for key in ids if key not in known])
        self._read_keys([text.passage for text in known.values()], rows)
        found: dict[int, Passage] = {}
        for text in known.values():
            self._hold(text.passage, text.memory(), found)
        read = [(to_engine(row, row.memory), row.memory) for row in rows if row.memory is not None]
        self._keep(PassageCache.keep_texts, lambda: {one.id: Text.of(one, of) for one, of in read})
        for passage, memory in read:
            self._hold(passage, memory, found)
        if chunks := [row for row in rows if row.asset_id is not None]:
            found.update(self._load_chunks(chunks))
        return found

    def _known(
        self, part: Callable[[PassageCache, Collection[int]], dict[int, T]], ids: Collection[int]
    ) -> dict[int, T]:
        """What the cache has of some passages."""
        return {} if self._cache is None or self._version is None else part(self._cache, ids)

    def _keep(
        self,
        part: Callable[[PassageCache, int, Mapping[int, T]], None],
        read: Callable[[], Mapping[int, T]],
    ) -> None:
        """Hand the cache what was read."""
        if self._cache is not None and self._version is not None:
            part(self._cache, self._version, read())

    def _read_keys(self, known: Iterable[Passage], rows: Iterable[PassageRow]) -> None:
        owners = {passage.owner for passage in known} | {row.owner_id for row in rows}
        if unread := owners - self._keys.keys():
            self._keys.update(ApiKey.objects.in_bulk(list(unread)))

    def _hold(self, passage: Passage, memory: Memory, found: dict[int, Passage]) -> None:
        if passage.owner in self._keys:
            memory.api_key = self._keys[passage.owner]
            self.memories[passage.parent] = memory
            found[passage.id] = passage

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
        condition, params = scope_sql.where(scope, dialect=passage_sql.dialect())
        sql = f"""
            SELECT p.id FROM {scope_sql.TABLE} p
            WHERE p.ordinal = 0 AND {condition} ORDER BY p.created_ms DESC, p.id DESC LIMIT ?"""
        return [row[0] for row in passage_sql.rows(sql, [*params, limit])]

    def firsts(self, parents: Collection[str], scope: Scope) -> dict[str, int]:
        """First passages of memories, by the memory's id, of those that are within the scope."""
        rows = PassageRow.objects.filter(memory__in=list(parents), ordinal=0)
        ids = {pk: str(parent) for pk, parent in rows.values_list("pk", "memory_id")}
        return {ids[key]: key for key in passage_sql.visible(ids, scope)}

    def places(self, ids: Collection[int]) -> dict[int, Place]:
        """Language and session of passages."""
        known = self._known(PassageCache.places, ids)
        read = passage_sql.places([key for key in ids if key not in known])
        self._keep(PassageCache.keep_places, lambda: read)
        return known | read

    def beside(self, ids: Collection[int], scope: Scope) -> Mapping[int, Beside]:
        """The neighbours of passages in their sessions, within the scope."""
        talked = {key: place for key, place in self.places(ids).items() if place.session}
        if self._version is None:
            return passage_sql.beside(talked, scope)
        pairs = self._known(PassageCache.beside, talked)
        read = passage_sql.beside([key for key in talked if key not in pairs], None)
        self._keep(PassageCache.keep_beside, lambda: read)
        pairs |= read
        named = {other for pair in pairs.values() for other in pair if other is not None}
        seen, turns = passage_sql.visible(named, scope), talked | self.places(named - talked.keys())
        # Behind a turn that the scope does not see, or that has left the session, may be another.
        behind = {
            key
            for key, pair in pairs.items()
            for other in pair
            if other is not None
            and not (other in seen and _are_together(turns[key], turns.get(other)))
        }
        kept = {key: pair for key, pair in pairs.items() if key not in behind}
        return kept | passage_sql.beside(behind, scope)

    def uses(self, ids: Collection[int]) -> Mapping[int, int]:
        """How often the memories of passages were retrieved."""
        return passage_sql.uses(ids)

    def dated(self, scope: Scope, start_ms: int, end_ms: int, limit: int) -> list[int]:
        """Passages within the scope that happened from ``start_ms`` to before ``end_ms``."""
        condition, params = scope_sql.where(scope, dialect=passage_sql.dialect())
        sql = f"""
            SELECT p.id FROM {scope_sql.TABLE} p
            WHERE p.occurred_ms >= ? AND p.occurred_ms < ? AND {condition}
            ORDER BY p.occurred_ms DESC, p.id DESC LIMIT ?"""
        return [row[0] for row in passage_sql.rows(sql, [start_ms, end_ms, *params, limit])]


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


def _are_together(turn: Place, other: Place | None) -> bool:
    return other is not None and (turn.owner, turn.session) == (other.owner, other.session)


def _rows_of(ids: Sequence[int]) -> list[PassageRow]:
    found = PassageRow.objects.filter(pk__in=ids).select_related("memory")
    return list(found) if ids else []


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
