"""The manifest of an archive: what is in it, of which version, and the hash of every member."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from django.conf import settings
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from memory.backup.errors import BackupError

NAME: Final = "manifest.json"
FORMAT: Final = "memory-studio-backup"
FORMAT_VERSION: Final = 1
VERSION: Final = "0.1.0"
"""Version of the product; a test compares it with ``pyproject.toml``."""
APPS: Final = ("auth", "memory")
"""Apps whose tables are in a backup."""


@dataclass(frozen=True, slots=True)
class Member:
    """One file of the archive. ``table`` names a model, or ``index`` the vectors' index."""

    name: str
    sha256: str
    rows: int
    table: str = ""
    columns: list[str] = field(default_factory=list)
    index: int = 0


@dataclass(frozen=True, slots=True)
class Manifest:
    """Everything that a restore checks before it touches a database."""

    created_at: str
    database: str
    migrations: dict[str, list[str]]
    key_fingerprint: str
    members: list[Member]
    version: str = VERSION

    def to_json(self) -> dict[str, Any]:
        """As it is written."""
        return {"format": FORMAT, "formatVersion": FORMAT_VERSION, **asdict(self)}

    @classmethod
    def from_json(cls, document: Any) -> Manifest:
        """As it was written. Raises ``BackupError`` for anything else."""
        if not isinstance(document, Mapping) or document.get("format") != FORMAT:
            raise BackupError("This is not a backup of Memory Studio.")
        if document.get("formatVersion") != FORMAT_VERSION:
            raise BackupError("This backup is of a newer version of Memory Studio; update first.")
        values = {key: document[key] for key in document if key not in ("format", "formatVersion")}
        try:
            members = [Member(**member) for member in values.pop("members")]
            return cls(members=members, **values)
        except (TypeError, KeyError):
            raise BackupError("The backup is damaged: its manifest cannot be read.") from None

    def rows_of(self, label: str) -> int:
        """Rows of a table."""
        return sum(member.rows for member in self.members if member.table == label)

    @property
    def vectors(self) -> list[Member]:
        """The members that hold vectors."""
        return [member for member in self.members if member.index]


def fingerprint(key: str) -> str:
    """What tells encryption keys apart without telling them."""
    return hashlib.sha256(f"memory studio encryption key\0{key}".encode()).hexdigest()[:16]


def own_fingerprint() -> str:
    """The fingerprint of this installation's key."""
    return fingerprint(settings.ENCRYPTION_KEY)


def applied_migrations() -> dict[str, list[str]]:
    """The migrations that this database has, by app."""
    applied = MigrationLoader(connection).applied_migrations
    return {app: sorted(name for label, name in applied if label == app) for app in APPS}


def known_migrations() -> dict[str, list[str]]:
    """The migrations that this version has, by app."""
    known = MigrationLoader(None).disk_migrations
    return {app: sorted(name for label, name in known if label == app) for app in APPS}
