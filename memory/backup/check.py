"""Whether an archive can be loaded here: by its migrations and columns, before anything is done."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.models import Field

from memory.backup.errors import BackupError
from memory.backup.manifest import Manifest, Member, known_migrations
from memory.backup.tables import INDEXES, TABLES, Table, by_label


@dataclass(frozen=True, slots=True)
class Part:
    """A table with the member that holds its rows."""

    table: Table
    member: Member


def parts(manifest: Manifest) -> list[Part]:
    """The tables of an archive in the order they are loaded.

    Raises ``BackupError`` when this version of the product cannot load it.
    """
    _check_migrations(manifest)
    members = {member.table: member for member in manifest.members if member.table}
    found = [
        Part(table, members[table.label]) for table in (*TABLES, INDEXES) if table.label in members
    ]
    unknown = sorted(label for label in members if by_label(label) is None)
    if unknown:
        raise BackupError(f"The backup holds a table that this version lacks: {unknown[0]}.")
    for part in found:
        _check_columns(part, manifest)
    return found


def is_older(manifest: Manifest) -> bool:
    """Whether the archive lacks migrations that this version has."""
    known = known_migrations()
    return any(set(names) - set(manifest.migrations.get(app, [])) for app, names in known.items())


def is_current() -> bool:
    """Whether the database has every migration of this version."""
    executor = MigrationExecutor(connection)
    return not executor.migration_plan(executor.loader.graph.leaf_nodes())


def filled() -> list[str]:
    """What the database holds already, as words; nothing when it is empty."""
    counts = {table.model: table.model._base_manager.count() for table in TABLES}
    return [
        f"{count:,} {model._meta.verbose_name_plural}" for model, count in counts.items() if count
    ]


def _check_migrations(manifest: Manifest) -> None:
    known = known_migrations()
    for app, names in manifest.migrations.items():
        newer = sorted(set(names) - set(known.get(app, [])))
        if newer:
            raise BackupError(
                f"The backup is of a newer version ({app}.{newer[-1]}); update Memory Studio first."
            )


def _check_columns(part: Part, manifest: Manifest) -> None:
    has = set(part.member.columns)
    surplus = sorted(has - set(part.table.columns))
    if surplus:
        name = f"{part.table.label}.{surplus[0]}"
        raise BackupError(f"The backup has a column that this version lacks: {name}.")
    missing = [entry for entry in part.table.fields if entry.attname not in has]
    needed = [entry.attname for entry in missing if not _can_be_absent(entry)]
    if needed:
        raise BackupError(
            f"The backup is of an older version ({manifest.version}) and lacks "
            f"{part.table.label}.{needed[0]}, which has no default: restore it with that version, "
            "then update."
        )


def _can_be_absent(entry: Field[object, object]) -> bool:
    return entry.null or entry.has_default()
