"""Which tables a backup holds, in an order in which they can be loaded, and which it leaves out."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Final, TypeAlias

from django.apps import apps
from django.db import models

from memory.models import Job, WebhookDelivery

Row: TypeAlias = list[Any]
"""The values of one row as JSON has them, in the order of the columns."""
_Field: TypeAlias = "models.Field[Any, Any]"
_Convert: TypeAlias = Callable[[Any], Any]
CHUNK: Final = 2_000


@dataclass(frozen=True, slots=True)
class Table:
    """One table of the backup. ``label`` names its model; ``rows`` are those that are kept."""

    label: str
    condition: models.Q = field(default_factory=models.Q)

    @property
    def model(self) -> type[models.Model]:
        """The model of its rows."""
        return apps.get_model(self.label)

    @property
    def fields(self) -> list[_Field]:
        """The fields that have a column."""
        return list(self.model._meta.concrete_fields)

    @property
    def columns(self) -> list[str]:
        """Attributes of a row (``owner_id``, not ``owner``)."""
        return [str(entry.attname) for entry in self.fields]

    def count(self) -> int:
        """How many rows are kept."""
        return self.model._base_manager.filter(self.condition).count()

    def rows(self) -> Iterator[Row]:
        """The rows by primary key, read a chunk at a time."""
        writers = [(place, _WRITERS[kind]) for place, kind in _kinds(self.fields)]
        found = self.model._base_manager.filter(self.condition).order_by("pk")
        for values in found.values_list(*self.columns).iterator(chunk_size=CHUNK):
            row = list(values)
            for place, write in writers:
                if row[place] is not None:
                    row[place] = write(row[place])
            yield row

    def reader(self, columns: list[str]) -> Callable[[Row], models.Model]:
        """What makes a row of the archive, with these columns, a row of the model."""
        by_name = {str(entry.attname): entry for entry in self.fields}
        readers = [(place, _READERS[kind]) for place, kind in _kinds(by_name[c] for c in columns)]
        model = self.model

        def read(row: Row) -> models.Model:
            if len(row) != len(columns):
                raise ValueError("a row does not have as many values as there are columns")
            for place, convert in readers:
                if row[place] is not None:
                    row[place] = convert(row[place])
            return model(**dict(zip(columns, row, strict=True)))

        return read


TABLES: Final = (
    Table("auth.User"),
    Table("memory.ApiKey"),
    Table("memory.EngineSettings"),
    Table("memory.Compaction"),
    Table("memory.Memory"),
    Table("memory.MemoryUse"),
    Table("memory.MemoryRevision"),
    Table("memory.BackendCopy"),
    Table("memory.Provider"),
    Table("memory.Webhook"),
    # What was still to be sent belongs to the installation that was backed up.
    Table("memory.WebhookDelivery", ~models.Q(state=WebhookDelivery.State.WAITING)),
    Table("memory.Vault"),
    Table("memory.VaultAsset"),
    Table("memory.VaultAssetRevision"),
    Table("memory.VaultGrant"),
    Table("memory.AuditEntry"),
    Table("memory.RetrievalCount"),
    Table("memory.InjectionDay"),
    Table("memory.Trace"),
    Table("memory.InboxItem"),
    Table("memory.ExtractionDay"),
    Table("memory.Job", ~models.Q(state__in=Job.ACTIVE)),
    Table("memory.Passage"),
    Table("memory.VaultChunk"),
)
"""What a backup always holds. A table comes after those that it refers to."""

INDEXES: Final = Table("memory.VectorIndex")
"""Only of use with the vectors, and only in a backup that has them."""

LEFT_OUT: Final[Mapping[str, str]] = {
    "memory.SignInLink": "a link works once and for a day",
    "memory.VectorMark": "what waits for a vector is found out by comparing passages and vectors",
    "memory.PassageChange": "the log that indexes follow belongs to one history of one database",
    "memory.InstallationFact": "fingerprints of the keys of one installation; a start writes them",
    "memory.UploadPart": "a file that waits to be imported can be sent again",
    "sessions.Session": "everybody signs in again",
    "contenttypes.ContentType": "made by the migrations",
    "auth.Permission": "made by the migrations",
    "auth.Group": "the studio has no groups",
    "auth.Group_permissions": "the studio has no groups",
    "auth.User_groups": "the studio has no groups",
    "auth.User_user_permissions": "the studio gives no permissions",
}
"""Tables that are not in a backup, each with the reason."""


def by_label(label: str) -> Table | None:
    """The table of a name in an archive; None for one that this version does not know."""
    return next((table for table in (*TABLES, INDEXES) if table.label == label), None)


def _text(value: Any) -> str:
    return str(value)


def _iso(value: Any) -> str:
    return str(value.isoformat())


def _bytes(value: Any) -> str:
    return base64.b64encode(bytes(value)).decode()


_Kind: TypeAlias = type["models.Field[Any, Any]"]
_WRITERS: Final[Mapping[_Kind, _Convert]] = {
    models.DateTimeField: _iso,
    models.DateField: _iso,
    models.UUIDField: _text,
    models.BinaryField: _bytes,
}
_READERS: Final[Mapping[_Kind, _Convert]] = {
    models.DateTimeField: datetime.fromisoformat,
    models.DateField: date.fromisoformat,
    models.UUIDField: uuid.UUID,
    models.BinaryField: base64.b64decode,
}


def _kinds(fields: Iterator[_Field] | list[_Field]) -> list[tuple[int, _Kind]]:
    """The places of values that JSON has no word for, with what they are."""
    found: list[tuple[int, _Kind]] = []
    for place, entry in enumerate(fields):
        kind = entry.target_field if isinstance(entry, models.ForeignKey) else entry
        for known in _WRITERS:
            if isinstance(kind, known):
                found.append((place, known))
                break
    return found
