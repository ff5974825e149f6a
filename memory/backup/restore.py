"""Loading a backup: everything in one transaction, or nothing."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final, TypeVar

import numpy as np
from django.core.management import call_command
from django.core.management.color import no_style
from django.db import DatabaseError, connection, models, transaction

from engine.errors import EngineError
from memory import row_writer, vault_wiring, wiring
from memory.backup import check, erase
from memory.backup.archive import ArchiveReader, Progress, quiet
from memory.backup.check import Part
from memory.backup.errors import BackupError
from memory.backup.manifest import Manifest, Member
from memory.models import Passage, VaultChunk, VectorIndex, VectorMark
from memory.passage_reader import PassageReader
from memory.principal import SYSTEM
from memory.services import audit, indexes
from memory.services.vaults import taking_in

BATCH: Final = 500
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Restored:
    """What was loaded; ``waiting`` passages have no vector in the backup, or an outdated one."""

    manifest: Manifest
    counts: dict[str, int]
    vectors: int
    waiting: int
    is_older: bool
    keys: dict[str, str]


def restore(path: Path, *, replace: bool = False, progress: Progress = quiet) -> Restored:
    """Load a backup into the database. Raises ``BackupError``; then nothing has changed.

    A database without tables gets them; one that holds something is only erased with ``replace``.
    """
    with ArchiveReader(path) as archive:
        parts = check.parts(archive.manifest)
        archive.verify()
        try:
            restored = _into_database(archive, parts, replace, progress)
        except (DatabaseError, EngineError, ValueError) as error:
            name = type(error).__name__
            raise BackupError(f"The backup cannot be loaded ({name}: {_line(error)}).") from error
        finally:
            # What this process holds in memory is of before, or of what was rolled back.
            wiring.reset()
            vault_wiring.reset()
    return restored


def _into_database(
    archive: ArchiveReader, parts: list[Part], replace: bool, progress: Progress
) -> Restored:
    if not check.is_current():
        call_command("migrate", verbosity=0, interactive=False)
    wiring.ensure_indexes()
    if (there := check.filled()) and not replace:
        raise BackupError(f"The database holds {', '.join(there)}; --replace erases them first.")
    with transaction.atomic():
        if there:
            erase.everything()
        erase.keys_of_the_installation()
        counts = {part.table.label: _load(archive, part, progress) for part in parts}
        _reset_sequences([part.table.model for part in parts])
        if VaultChunk._meta.label not in counts:
            taking_in.keep_here()
        # A backup of an earlier version has no passages of open vaults.
        taking_in.mark_lacking()
        _index_words(progress)
        vectors = sum(_load_vectors(archive, m, progress) for m in archive.manifest.vectors)
        waiting = _mark()
        detail = {"memories": counts.get("memory.Memory", 0), "vectors": vectors}
        audit.record(SYSTEM, "database.restore", detail=detail)
    names = [member.name for member in archive.manifest.members if member.name.startswith("keys/")]
    return Restored(
        manifest=archive.manifest,
        counts=counts,
        vectors=vectors,
        waiting=waiting,
        is_older=check.is_older(archive.manifest),
        keys={name.removeprefix("keys/"): archive.text(name) for name in names},
    )


def _load(archive: ArchiveReader, part: Part, progress: Progress) -> int:
    read, done = part.table.reader(part.member.columns), 0
    for rows in _batches(archive.lines(part.member)):
        try:
            row_writer.insert([read(row) for row in rows])
        except (DatabaseError, TypeError, ValueError) as error:
            what = f"a row of {part.table.label} cannot be stored ({_line(error)})"
            raise BackupError(f"The backup cannot be loaded: {what}.") from error
        done += len(rows)
        progress(part.member.name, done)
    return done


def _reset_sequences(loaded: list[type[models.Model]]) -> None:
    """Have the next rows take numbers that are free. SQLite does so by itself."""
    with connection.cursor() as cursor:
        for statement in connection.ops.sequence_reset_sql(no_style(), loaded):
            cursor.execute(statement)


def _index_words(progress: Progress) -> None:
    """Build the keyword index, which also tells every other index what is new."""
    index, after, done = wiring.keyword_index(), -1, 0
    index.clear()
    while True:
        rows = Passage.objects.filter(pk__gt=after).order_by("pk")
        ids = list(rows.values_list("pk", flat=True)[:BATCH])
        if not ids:
            break
        index.upsert(list(PassageReader().load(ids).values()))
        after, done = ids[-1], done + len(ids)
        progress("keyword index", done)
    index.mark_current()


def _load_vectors(archive: ArchiveReader, member: Member, progress: Progress) -> int:
    index = VectorIndex.objects.filter(pk=member.index).first()
    if index is None:
        raise BackupError(f"The backup is damaged: nothing tells whose vectors {member.name} are.")
    store, done = wiring.store_for(index), 0
    store.ensure()
    for rows in _batches(archive.lines(member)):
        store.upsert(
            {row[0]: np.frombuffer(base64.b64decode(row[3]), "<f4") for row in rows},
            hashes={row[0]: row[1] for row in rows},
            languages={row[0]: row[2] for row in rows},
        )
        done += len(rows)
        progress(member.name, done)
    return done


def _mark() -> int:
    """Mark what the loaded indexes lack; how many passages wait for the active one."""
    for index in VectorIndex.objects.exclude(state=VectorIndex.State.RETIRED):
        indexes.mark_lost(index)
    active = indexes.active()
    if active is None:
        return Passage.objects.count()
    return VectorMark.objects.filter(index=active).count()


def _batches(rows: Iterable[Item]) -> Iterator[list[Item]]:
    iterator = iter(rows)
    while batch := list(islice(iterator, BATCH)):
        yield batch


def _line(error: BaseException) -> str:
    """The first line of an error: those of a server go on with the whole row."""
    return str(error).strip().splitlines()[0].rstrip(".") if str(error).strip() else "no reason"
