"""Keeps passages, the keyword index, the change log and the vector marks in step with memories.

Every function runs inside the transaction of the change it follows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from engine.text.chunk import chunks
from engine.text.language import language_of
from engine.text.template import embedded_text, indexed_text, speaker_of, text_hash
from memory import wiring
from memory.clock import to_ms
from memory.models import Memory, Passage, PassageChange, VectorIndex, VectorMark
from memory.passage_reader import all_to_engine

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
class _Plan:
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
    for start in range(0, len(memories), BATCH):
        _sync(memories[start : start + BATCH])


def _sync(memories: Sequence[Memory]) -> None:
    existing: dict[object, list[Passage]] = {memory.pk: [] for memory in memories}
    for row in Passage.objects.filter(memory__in=memories).order_by("ordinal"):
        existing[row.memory_id].append(row)
    plan = _Plan()
    for memory in memories:
        _plan(plan, memory, existing[memory.pk])
    _remove(plan.surplus)
    _write(plan)


def _plan(plan: _Plan, memory: Memory, rows: Sequence[Passage]) -> None:
    pieces = _pieces(memory)
    plan.surplus.extend(row.pk for row in rows[len(pieces) :])
    for ordinal, piece in enumerate(pieces):
        if ordinal >= len(rows):
            plan.fresh.append(_fill(Passage(memory=memory, ordinal=ordinal), memory, piece))
            continue
        row = rows[ordinal]
        row.memory = memory
        if row.keyword_hash != piece.keyword_hash:
            plan.reworded.append(row)
        if row.text_hash != piece.text_hash:
            plan.unembedded.append(row)
        plan.kept.append(_fill(row, memory, piece))


def remove(memories: Iterable[Memory]) -> None:
    """Take memories out of every index at once (trash, purge)."""
    _remove(list(Passage.objects.filter(memory__in=list(memories)).values_list("pk", flat=True)))


def mark_all(index: VectorIndex) -> int:
    """Mark every passage as waiting for a vector in an index; how many wait."""
    return _mark(index, Passage.objects.values_list("pk", flat=True))


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


def _fill(row: Passage, memory: Memory, piece: _Piece) -> Passage:
    row.start, row.end = piece.start, piece.end
    row.text_hash, row.keyword_hash = piece.text_hash, piece.keyword_hash
    row.owner_id = memory.api_key_id
    row.session, row.type = memory.session_id, memory.type
    row.is_shared, row.is_pinned = memory.is_shared, memory.is_pinned
    row.is_archived = memory.archived_at is not None
    row.speaker = speaker_of(memory.metadata)
    row.language = language_of(piece.embedded)
    row.occurred_ms = to_ms(memory.occurred_at or memory.created_at)
    row.created_ms, row.retained_ms = to_ms(memory.created_at), to_ms(memory.retained_at)
    row.expires_ms = to_ms(memory.expires_at) if memory.expires_at else None
    return row


_COLUMNS = (
    "start",
    "end",
    "text_hash",
    "keyword_hash",
    "owner",
    "session",
    "type",
    "is_shared",
    "is_pinned",
    "is_archived",
    "speaker",
    "language",
    "occurred_ms",
    "created_ms",
    "retained_ms",
    "expires_ms",
)


def _write(plan: _Plan) -> None:
    if plan.fresh:
        Passage.objects.bulk_create(plan.fresh, batch_size=500)
    if plan.kept:
        # As an upsert: Django's bulk_update builds a CASE for each value: 17 times slower.
        Passage.objects.bulk_create(
            plan.kept,
            batch_size=200,
            update_conflicts=True,
            unique_fields=["id"],
            update_fields=_COLUMNS,
        )
    if plan.fresh or plan.reworded:
        wiring.keyword_index().upsert(all_to_engine(plan.fresh + plan.reworded))
    if plan.fresh or plan.unembedded:
        ids = [row.pk for row in plan.fresh + plan.unembedded]
        for index in VectorIndex.objects.exclude(state=VectorIndex.State.RETIRED):
            _mark(index, ids)
    _log([row.pk for row in plan.fresh + plan.kept])


def _mark(index: VectorIndex, ids: Iterable[int]) -> int:
    marks = [VectorMark(index=index, passage_id=passage_id) for passage_id in ids]
    VectorMark.objects.bulk_create(
        marks,
        batch_size=400,
        update_conflicts=True,
        unique_fields=["index", "passage"],
        update_fields=["attempts", "error"],
    )
    return len(marks)


def _remove(ids: Collection[int]) -> None:
    # The post_delete receiver takes each one out of both indexes.
    if ids:
        Passage.objects.filter(pk__in=list(ids)).delete()


def _log(ids: Iterable[int]) -> None:
    PassageChange.objects.bulk_create(
        [PassageChange(passage_id=passage_id) for passage_id in ids], batch_size=500
    )
