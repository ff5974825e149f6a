"""Keeps passages, the keyword index, the change log and the vector marks in step with memories.

What lies in open vaults comes the same way (``services.vaults.chunking`` plans it). Every function
runs inside the transaction of the change it follows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from django.db import connection

from engine.text.chunk import chunks
from engine.text.language import language_of
from engine.text.template import embedded_text, indexed_text, speaker_of, text_hash
from memory import row_writer, wiring
from memory.clock import to_ms
from memory.models import Memory, Passage, VaultChunk, VectorIndex, VectorMark
from memory.passage_reader import all_to_engine
from memory.services import mirror_soon
from memory.services.vaults import spaces

BATCH: Final = 500
"""Memories of one statement: databases limit how many values it may carry."""


@dataclass(frozen=True, slots=True)
class _Piece:
    start: int
    end: int
    text_hash: str
    keyword_hash: str
    embedded: str


@dataclass(slots=True)
class Plan:
    """What one batch writes: new rows, those with new words, those to embed, all kept."""

    fresh: list[Passage] = field(default_factory=list)
    reworded: list[Passage] = field(default_factory=list)
    unembedded: list[Passage] = field(default_factory=list)
    kept: list[Passage] = field(default_factory=list)
    surplus: list[int] = field(default_factory=list)


def sync(memories: Sequence[Memory]) -> None:
    """Bring the passages of live or archived memories up to date.

    Only passages whose text changed are written to the keyword index, only those whose embedded
    text changed are marked for a vector; a change of scope (pin, expiry, session, type) only
    updates the columns.
    """
    mirror_soon.mirror_soon()
    for start in range(0, len(memories), BATCH):
        batch = memories[start : start + BATCH]
        existing: dict[object, list[Passage]] = {memory.pk: [] for memory in batch}
        for row in Passage.objects.filter(memory__in=batch).order_by("ordinal"):
            existing[row.memory_id].append(row)
        _sync(batch, existing)


def add(memories: Sequence[Memory]) -> None:
    """Make the passages of memories that were stored just now and have none."""
    mirror_soon.mirror_soon()
    for start in range(0, len(memories), BATCH):
        _sync(memories[start : start + BATCH], {})


def _sync(memories: Sequence[Memory], existing: Mapping[object, Sequence[Passage]]) -> None:
    plan = Plan()
    for memory in memories:
        _plan(plan, memory, existing.get(memory.pk, ()))
    _remove(plan.surplus)
    write(plan)


def _plan(plan: Plan, memory: Memory, rows: Sequence[Passage]) -> None:
    pieces = _pieces(memory)
    plan.surplus.extend(row.pk for row in rows[len(pieces) :])
    for ordinal, piece in enumerate(pieces):
        if ordinal >= len(rows):
            row = Passage(memory=memory, ordinal=ordinal, **_columns(memory, piece))
            plan.fresh.append(row)
            continue
        row = rows[ordinal]
        if row.keyword_hash != piece.keyword_hash:
            plan.reworded.append(row)
        if row.text_hash != piece.text_hash:
            plan.unembedded.append(row)
        plan.kept.append(row)
        row.memory = memory
        for name, value in _columns(memory, piece).items():
            setattr(row, name, value)


def remove(memories: Iterable[Memory]) -> None:
    """Take memories out of every index at once (trash, purge)."""
    mirror_soon.mirror_soon()
    _remove(list(Passage.objects.filter(memory__in=list(memories)).values_list("pk", flat=True)))


def mark_all(index: VectorIndex) -> int:
    """Mark every passage that an index is to embed as waiting for a vector; how many wait."""
    wiring.lock_indexes(alone=True)
    return mark(index, list(spaces.embedded_by(index).values_list("pk", flat=True)))


def mark(index: VectorIndex, ids: Collection[int]) -> int:
    """Mark passages as waiting for a vector in an index; how many."""
    row_writer.many(_MARK, [(index.pk, passage_id) for passage_id in ids])
    return len(ids)


def _pieces(memory: Memory) -> list[_Piece]:
    text = indexed_text(memory.key, memory.metadata)
    pieces: list[_Piece] = []
    for chunk in chunks(memory.content):
        prefix = text.body_prefix if not pieces else ""
        body = prefix + memory.content[chunk.start : chunk.end]
        embedded = embedded_text(text.title, body)
        # The keyword index also narrows by owner and shared mark, so those count as its text.
        held = text_hash(f"{memory.api_key_id}\0{memory.is_shared}\0{embedded}\0{text.meta}")
        pieces.append(_Piece(chunk.start, chunk.end, text_hash(embedded), held, embedded))
    return pieces


def _columns(memory: Memory, piece: _Piece) -> dict[str, Any]:
    """What a passage holds beside its place; the same names for every passage."""
    return {
        "start": piece.start,
        "end": piece.end,
        "text_hash": piece.text_hash,
        "keyword_hash": piece.keyword_hash,
        "owner_id": memory.api_key_id,
        "session": memory.session_id,
        "type": memory.type,
        "is_shared": memory.is_shared,
        "is_pinned": memory.is_pinned,
        "is_archived": memory.archived_at is not None,
        "speaker": speaker_of(memory.metadata),
        "language": language_of(piece.embedded),
        "occurred_ms": to_ms(memory.occurred_at or memory.created_at),
        "created_ms": to_ms(memory.created_at),
        "retained_ms": to_ms(memory.retained_at),
        "expires_ms": to_ms(memory.expires_at) if memory.expires_at else None,
    }


_PLACE: Final = frozenset({"id", "kind", "memory_id", "asset_id", "vault_id"})
_UPDATED: Final = [
    field.attname for field in Passage._meta.concrete_fields if field.attname not in _PLACE
]
_MARK: Final = """
    INSERT INTO memory_vectormark (index_id, passage_id, attempts, error)
    VALUES (%s, %s, 0, '')
    ON CONFLICT (index_id, passage_id) DO UPDATE SET attempts = 0, error = ''"""
_LOG: Final = "INSERT INTO memory_passagechange (passage_id) VALUES (%s)"


def write(plan: Plan) -> None:
    """Carry a plan out, but for what it gives up."""
    # In this order: the places of those that stay are free before new ones take them.
    row_writer.update(plan.kept, _UPDATED)
    _insert(plan.fresh)
    worded = plan.fresh + plan.reworded
    if worded:
        wiring.keyword_index().upsert(all_to_engine(worded))
    if plan.fresh or plan.unembedded:
        wiring.lock_indexes()
        for index in VectorIndex.objects.exclude(state=VectorIndex.State.RETIRED):
            mark(index, spaces.marked(index, plan.fresh + plan.unembedded))
    # The keyword index has logged those it was given.
    logged = {row.pk for row in worded}
    _log([row.pk for row in plan.kept if row.pk not in logged])


def _insert(rows: Sequence[Passage]) -> None:
    """Insert passages and learn the ids that the database gave them.

    They are read back by parent and ordinal: what an insert returns has no sure order.
    """
    if not rows:
        return
    parent = "memory_id" if rows[0].memory_id is not None else "asset_id"
    row_writer.insert(rows)
    places = [row.ordinal for row in rows]
    stored = Passage.objects.filter(
        **{f"{parent}__in": {getattr(row, parent) for row in rows}},
        ordinal__range=(min(places), max(places)),
    )
    ids: dict[tuple[object, int], int] = {
        (key, ordinal): pk for key, ordinal, pk in stored.values_list(parent, "ordinal", "pk")
    }
    for row in rows:
        row.pk = ids[getattr(row, parent), row.ordinal]


def _remove(ids: Collection[int]) -> None:
    # The post_delete receiver takes each one out of both indexes.
    if ids:
        wiring.lock_indexes()
        rows = Passage.objects.filter(pk__in=list(ids))
        if connection.features.has_select_for_update:
            # Their marks go first, and who embeds one locks it before its mark.
            list(rows.select_for_update().order_by("pk").values_list("pk"))
        rows.delete()


def discard(ids: Collection[int]) -> None:
    """Take passages of vaults out of every index, in a few statements however many they are."""
    if not ids:
        return
    mirror_soon.mirror_soon()
    wiring.lock_indexes()
    rows = Passage.objects.filter(pk__in=list(ids))
    if connection.features.has_select_for_update:
        list(rows.select_for_update().order_by("pk").values_list("pk"))
    # This writes them to the change log as well.
    wiring.keyword_index().delete(ids)
    for row in VectorIndex.objects.all():
        store = wiring.store_for(row)
        store.ensure()
        store.delete(ids)
    for model in (VectorMark, VaultChunk):
        beside = model.objects.filter(passage__in=list(ids))
        beside._raw_delete(beside.db)
    rows._raw_delete(rows.db)


def log(ids: Iterable[int]) -> None:
    """Have every index that follows the change log look at passages again."""
    mirror_soon.mirror_soon()
    _log(ids)


def _log(ids: Iterable[int]) -> None:
    row_writer.many(_LOG, [(passage_id,) for passage_id in ids])
