"""Writing a backup."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db import DatabaseError, connection

from engine.vectors.stored import StoredVectors
from memory import wiring
from memory.backup.archive import ArchiveWriter, Progress, quiet
from memory.backup.errors import BackupError
from memory.backup.manifest import Manifest, Member, applied_migrations, own_fingerprint
from memory.backup.snapshot import snapshot
from memory.backup.tables import INDEXES, TABLES, Table
from memory.clock import iso, now
from memory.models import VectorIndex
from memory.principal import SYSTEM
from memory.services import audit


@dataclass(frozen=True, slots=True)
class Contents:
    """What a backup holds beside the tables: vectors, and key files by their names."""

    with_vectors: bool = False
    keys: Mapping[str, str] | None = None


def write(path: Path, contents: Contents | None = None, progress: Progress = quiet) -> Manifest:
    """Back everything up as it is at this moment. Raises ``BackupError``; then there is no file."""
    chosen = contents or Contents()
    try:
        with ArchiveWriter(path, progress) as archive:
            with snapshot():
                manifest = _copy(archive, chosen)
            archive.close(manifest)
        _audit(manifest)
    except DatabaseError as error:
        raise BackupError(f"The database cannot be read ({type(error).__name__}).") from error
    except OSError as error:
        reason = (error.strerror or "unknown error").lower()
        raise BackupError(f"The backup cannot be written ({reason}).") from None
    return manifest


def _copy(archive: ArchiveWriter, contents: Contents) -> Manifest:
    # First of all a read: the snapshot begins with it.
    migrations, created = applied_migrations(), iso(now())
    for table in (*TABLES, *([INDEXES] if contents.with_vectors else [])):
        archive.add(_member(table), table.rows())
    if contents.with_vectors:
        for row in VectorIndex.objects.order_by("pk"):
            archive.add(Member(f"vectors/{row.pk}.jsonl", "", 0, index=row.pk), _vectors(row))
    for name, key in (contents.keys or {}).items():
        archive.add_text(f"keys/{name}", key)
    return Manifest(
        created_at=created or "",
        database=connection.vendor,
        migrations=migrations,
        key_fingerprint=own_fingerprint(),
        members=archive.members,
    )


def _member(table: Table) -> Member:
    return Member(f"tables/{table.label}.jsonl", "", 0, table=table.label, columns=table.columns)


def _vectors(row: VectorIndex) -> Iterator[list[Any]]:
    stored = StoredVectors(wiring.connect, index_id=row.pk, dim=row.dim)
    for passage_id, text_hash, language, vector in stored.rows():
        yield [passage_id, text_hash, language, base64.b64encode(vector).decode()]


def _audit(manifest: Manifest) -> None:
    detail = {
        "memories": manifest.rows_of("memory.Memory"),
        "vectors": sum(member.rows for member in manifest.vectors),
    }
    audit.record(SYSTEM, "database.backup", detail=detail)
