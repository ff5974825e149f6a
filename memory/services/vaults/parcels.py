"""A vault as an encrypted file: out of one machine, into another."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import IO, Any, Final

from django.db import transaction
from django.db.models import F
from django.utils.translation import gettext as _

from engine.vault import ingest, parcel
from engine.vault.errors import VaultError
from memory import vault_wiring
from memory.clock import iso, now
from memory.errors import Invalid
from memory.models import Vault, VaultAsset, VaultAssetRevision
from memory.principal import Principal
from memory.services import access as owners
from memory.services import audit
from memory.services.vaults import access, assets, lifecycle
from memory.services.vaults.access import Watch
from memory.services.vaults.contents import Content, Contents
from memory.services.vaults.lifecycle import Made, VaultDraft

VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a file is read into: a vault that is there (``into``), or a new one.

    A new one is sealed with the passphrase of the file, unless ``is_open``.
    """

    into: str = ""
    name: str = ""
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class Received:
    """What an import did. ``made`` has the recovery key of a new vault."""

    vault: Vault
    made: Made | None
    created: int
    revised: int
    unchanged: int


def write(principal: Principal, reference: str, file: IO[bytes], passphrase: str) -> int:
    """Write a vault with all revisions of everything in it; how many assets.

    Only the passphrase, which may be another one than the vault's, opens the file. Raises
    ``VaultError``: ``vault_locked``, ``weak_passphrase``, and what voids work.
    """
    vault = access.find(principal, reference, "manager")
    watch = Watch(principal, vault, "manager")
    watch()
    count = vault.assets.filter(trashed_at__isnull=True).count()
    parcel.write(_records(watch), file, passphrase, cost=vault_wiring.cost())
    watch()
    detail = {"assets": count}
    audit.record(principal, "vault.export", owner=vault.owner, ids=[vault.uid], detail=detail)
    return count


def read(
    principal: Principal, file: IO[bytes], passphrase: str, destination: Destination
) -> Received:
    """Read such a file: everything, or nothing when it is damaged.

    An asset that the vault has already becomes a revision where its texts differ. Raises
    ``Invalid`` (``sealed_damaged``) and ``VaultError``: ``wrong_passphrase``, ``vault_locked``.
    """
    owners.require(principal, "write")
    records = _opened(file, passphrase)
    head = _head(next(records, None))
    with transaction.atomic():
        vault, made = _vault(principal, head, passphrase, destination)
        try:
            assets.take_turn(vault)
            counts = _receive(principal, vault, records)
        except Exception:
            if made is not None:
                vault_wiring.keeper().lock(str(vault.uid))
            raise
        Vault.objects.filter(pk=vault.pk).update(revision=F("revision") + 1, updated_at=now())
        audit.record(
            principal, "vault.import", owner=vault.owner, ids=[vault.uid], detail=dict(counts)
        )
    vault.refresh_from_db()
    return Received(vault, made, **counts)


def _opened(file: IO[bytes], passphrase: str) -> Iterator[object]:
    """The records of a file; a damaged one is the sender's matter, no tier that is down."""
    try:
        yield from parcel.read(file, passphrase)
    except VaultError as error:
        if error.code != "sealed_damaged":
            raise
        raise Invalid(str(error), code=error.code) from None


def _records(watch: Watch) -> Iterator[dict[str, Any]]:
    vault, contents = watch.vault, Contents(watch.vault)
    yield {
        "kind": "vault",
        "version": VERSION,
        "name": vault.name,
        "deviceOnly": vault.is_device_only,
        "autoLockMinutes": vault.auto_lock_minutes,
    }
    rows = vault.assets.filter(trashed_at__isnull=True).order_by("pk")
    for row in rows.iterator(chunk_size=100):
        watch.often()
        yield {
            "kind": "asset",
            "id": str(row.pk),
            "type": row.kind,
            "created": iso(row.created_at),
            "written": iso(row.updated_at),
            "revision": row.revision,
            **_texts(contents.whole(row)),
            "revisions": [
                {
                    "revision": earlier.revision,
                    "written": iso(earlier.written_at),
                    "replaced": iso(earlier.replaced_at),
                    "replacedBy": earlier.replaced_by,
                    **_texts(contents.whole(earlier)),
                }
                for earlier in row.revisions.order_by("revision")
            ],
        }


def _texts(content: Content) -> dict[str, Any]:
    return {
        "title": content.title,
        "body": content.body,
        "meta": dict(content.meta),
        "source": content.source,
    }


def _head(record: object) -> Mapping[str, Any]:
    if not isinstance(record, dict) or record.get("kind") != "vault":
        raise _unknown()
    if record.get("version") != VERSION:
        raise _unknown()
    return record


def _vault(
    principal: Principal, head: Mapping[str, Any], passphrase: str, destination: Destination
) -> tuple[Vault, Made | None]:
    if destination.into:
        if destination.name:
            message = _("Name a new vault, or one that is there.")
            raise Invalid(message, fields={"name": message})
        return access.find(principal, destination.into, "writer"), None
    minutes = head.get("autoLockMinutes")
    draft = VaultDraft(
        destination.name or str(head.get("name", "")),
        is_sealed=not destination.is_open,
        passphrase=passphrase,
        is_device_only=head.get("deviceOnly") is True,
        auto_lock_minutes=minutes if type(minutes) is int else 15,
    )
    made = lifecycle.create(principal, draft)
    return made.vault, made


def _receive(principal: Principal, vault: Vault, records: Iterator[object]) -> dict[str, int]:
    contents = Contents(vault)
    counts = {"created": 0, "revised": 0, "unchanged": 0}
    for record in records:
        if not isinstance(record, dict):
            raise _unknown()
        try:
            outcome = _take(principal, vault, contents, record)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise _unknown() from None
        counts[outcome] += 1
    return counts


def _take(principal: Principal, vault: Vault, contents: Contents, record: Mapping[str, Any]) -> str:
    content = _content(record)
    key = uuid.UUID(record["id"])
    there = VaultAsset.objects.filter(pk=key).first()
    if there is not None and there.vault_id == vault.pk and there.trashed_at is None:
        return assets.replace(principal, contents, there, content)
    kind = VaultAsset.Kind(record["type"])
    row = VaultAsset(
        id=uuid.uuid4() if there is not None else key,
        vault=vault,
        kind=kind,
        revision=int(record["revision"]),
        created_at=datetime.fromisoformat(record["created"]),
        updated_at=datetime.fromisoformat(record["written"]),
    )
    contents.write(row, content)
    known = vault.assets.filter(trashed_at__isnull=True, source_key=row.source_key)
    if row.source_key and known.exists():
        row.source_key = ""
    row.save()
    assets.index(vault, [row])
    for earlier in record["revisions"]:
        _take_revision(row, contents, earlier)
    return "created"


def _take_revision(row: VaultAsset, contents: Contents, earlier: Mapping[str, Any]) -> None:
    number = int(earlier["revision"])
    if not 0 < number < row.revision:
        raise ValueError("no earlier revision")
    # Sealed for its own place: that of the asset at that revision.
    was = VaultAsset(id=row.pk, vault=row.vault, kind=row.kind, revision=number)
    contents.write(was, _content(earlier))
    VaultAssetRevision.objects.create(
        asset=row,
        revision=number,
        title=was.title,
        body=was.body,
        meta=was.meta,
        sealed_head=was.sealed_head,
        sealed_body=was.sealed_body,
        size=was.size,
        written_at=datetime.fromisoformat(earlier["written"]),
        replaced_at=datetime.fromisoformat(earlier["replaced"]),
        replaced_by=str(earlier["replacedBy"])[:160],
    )


def _content(record: Mapping[str, Any]) -> Content:
    meta = record["meta"]
    if not isinstance(meta, dict):
        raise TypeError("metadata are an object")
    return Content(
        ingest.title_of(str(record["title"]), str(record["source"])),
        ingest.checked(str(record["body"])),
        meta,
        str(record["source"]),
    )


def _unknown() -> Invalid:
    message = _("The file holds no vault that this version knows.")
    return Invalid(message, code="sealed_damaged")
