"""Keeps the passages of open vaults in step with what lies in them, like those of memories.

Only memories and cards of open vaults have passages: nothing of a sealed vault, and no private
content, credential or file, ever comes into a table that is searched. Every function runs inside
the transaction of the change it follows.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db import transaction
from django.db.models import Exists, F, OuterRef, QuerySet

from engine.text.chunk import Chunk, chunks
from engine.text.language import language_of
from engine.text.template import embedded_text, indexed_text, text_hash
from memory import row_writer, wiring
from memory.clock import to_ms
from memory.models import Passage, Vault, VaultAsset, VaultChunk
from memory.services import passages
from memory.services.passages import Plan

PAGE: Final = 1_000
"""Passages of one statement."""
_PLACE: Final = ("byte_start", "byte_end")


@dataclass(frozen=True, slots=True)
class _Piece:
    """A chunk of an asset, and the columns of its passage."""

    chunk: Chunk
    columns: dict[str, Any]


def sync(vault: Vault, rows: Iterable[VaultAsset]) -> None:
    """Bring the passages of an open vault's assets up to date; their texts are those of the rows.

    A chunk whose text stays keeps its row, its hash and its vector, wherever it stands now.
    """
    if vault.is_sealed:
        raise ValueError("a sealed vault has no passages")
    for row in rows:
        if row.trashed_at is None and row.kind in VaultAsset.SEARCHABLE:
            _sync(vault, row)


def remove(rows: Iterable[VaultAsset]) -> None:
    """Take assets out of every index at once (trash, purge)."""
    _discard(Passage.objects.filter(asset__in=[row.pk for row in rows]))


def remove_all(vault: Vault) -> None:
    """Take everything of a vault out of every index."""
    _discard(Passage.objects.filter(vault_id=vault.pk))


def remove_most(vault: Vault) -> None:
    """Take all of a large vault but the last out of every index, some assets in a transaction.

    So no other writer waits for long. Should it be broken off, the vault is whole, and marked to be
    taken in again.
    """
    rows = Passage.objects.filter(vault_id=vault.pk).order_by("pk")
    parents = rows.values_list("asset", flat=True)
    if len(parents[: PAGE + 1]) <= PAGE:
        return
    # Until the end it is searched in memory, if at all: as another version.
    Vault.objects.filter(pk=vault.pk).update(needs_index=True, revision=F("revision") + 1)
    while len(found := list(parents[:PAGE])) == PAGE:
        with transaction.atomic():
            _discard(Passage.objects.filter(asset__in=set(found)))


def erase_files() -> None:
    """Have no file keep the terms or vectors of what is erased for good in this transaction."""
    # At once, should the process end before the commit; and after it, should another process
    # have made them again meanwhile.
    wiring.forget_files()
    transaction.on_commit(wiring.forget_files)


def lacking() -> QuerySet[VaultAsset]:
    """What of open vaults ought to have passages, and has none."""
    found = VaultAsset.objects.filter(
        vault__is_sealed=False, trashed_at__isnull=True, kind__in=VaultAsset.SEARCHABLE
    )
    return found.exclude(Exists(Passage.objects.filter(asset=OuterRef("pk")))).order_by()


def _discard(rows: QuerySet[Passage]) -> None:
    while ids := list(rows.order_by("pk").values_list("pk", flat=True)[:PAGE]):
        passages.discard(ids)


def _sync(vault: Vault, row: VaultAsset) -> None:
    held = Passage.objects.filter(asset=row).order_by("ordinal").select_related("chunk")
    by_text: dict[tuple[str, str], deque[Passage]] = defaultdict(deque)
    for passage in held.defer("chunk__text"):
        by_text[passage.text_hash, passage.chunk.sha256].append(passage)
    kept: list[tuple[Passage, _Piece]] = []
    fresh: list[_Piece] = []
    for piece in _pieces(vault, row):
        same = by_text.get((piece.columns["text_hash"], piece.chunk.sha256))
        if same:
            kept.append((same.popleft(), piece))
        else:
            fresh.append(piece)
    surplus = [passage.pk for rows in by_text.values() for passage in rows]
    for start in range(0, len(surplus), PAGE):
        passages.discard(surplus[start : start + PAGE])
    # Those that stay go to their places first, and leave their own to the new ones.
    for start in range(0, len(kept), PAGE):
        _keep(row, kept[start : start + PAGE])
    for start in range(0, len(fresh), PAGE):
        _add(row, fresh[start : start + PAGE])


def _pieces(vault: Vault, row: VaultAsset) -> Iterator[_Piece]:
    meta, created_ms = indexed_text("", row.meta.get("meta", {})).meta, to_ms(row.created_at)
    for ordinal, chunk in enumerate(chunks(row.body)):
        embedded = embedded_text(row.title, chunk.text)
        columns = {
            "kind": row.kind,
            "type": row.kind,
            "ordinal": ordinal,
            "start": chunk.start,
            "end": chunk.end,
            "text_hash": text_hash(embedded),
            "keyword_hash": text_hash(f"{vault.pk}\0{embedded}\0{meta}"),
            "owner_id": vault.owner_id,
            "vault_id": vault.pk,
            "language": language_of(embedded),
            "occurred_ms": created_ms,
            "created_ms": created_ms,
            "retained_ms": created_ms,
        }
        yield _Piece(chunk, columns)


def _keep(row: VaultAsset, kept: Sequence[tuple[Passage, _Piece]]) -> None:
    plan = Plan()
    moved: list[VaultChunk] = []
    for passage, piece in kept:
        if passage.keyword_hash != piece.columns["keyword_hash"]:
            plan.reworded.append(passage)
        if any(getattr(passage, name) != value for name, value in piece.columns.items()):
            plan.kept.append(passage)
        if passage.chunk.byte_start != piece.chunk.byte_start:
            moved.append(passage.chunk)
        passage.asset = row
        _place(passage.chunk, piece.chunk)
        for name, value in piece.columns.items():
            setattr(passage, name, value)
    passages.write(plan)
    row_writer.update(moved, _PLACE)


def _add(row: VaultAsset, fresh: Sequence[_Piece]) -> None:
    rows = [Passage(asset=row, **piece.columns) for piece in fresh]
    for passage, piece in zip(rows, fresh, strict=True):
        passage.chunk = VaultChunk()
        _place(passage.chunk, piece.chunk)
    passages.write(Plan(fresh=rows))
    for passage in rows:
        passage.chunk.passage_id = passage.pk
    row_writer.insert([passage.chunk for passage in rows])


def _place(row: VaultChunk, chunk: Chunk) -> None:
    row.text, row.sha256 = chunk.text, chunk.sha256
    row.byte_start, row.byte_end = chunk.byte_start, chunk.byte_end
