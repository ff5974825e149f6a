"""What lies in a vault: put in, read, revised, removed."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from django.db import transaction
from django.db.models import F
from django.utils.translation import gettext as _

from engine.vault import capacity, ingest
from engine.vault.errors import VaultError
from memory.clock import now
from memory.errors import Conflict, Invalid, NotFound, TooLarge
from memory.models import Vault, VaultAsset, VaultAssetRevision
from memory.principal import Principal
from memory.services import audit, embedding
from memory.services.vaults import access, chunking
from memory.services.vaults.contents import Content, Contents

MAX_SOURCE: Final = 1024
MAX_META: Final = 16_000
MAX_LIMIT: Final = 200

Outcome = Literal["created", "revised", "unchanged"]


@dataclass(frozen=True, slots=True)
class AssetDraft:
    """An asset to store. One with a ``source`` that is known already becomes a revision."""

    body: str
    title: str = ""
    kind: str = VaultAsset.Kind.CARD
    meta: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""

    def __repr__(self) -> str:
        return f"AssetDraft({self.kind})"


@dataclass(frozen=True, slots=True)
class Stored:
    """An asset as it is now, and what became of it."""

    asset: VaultAsset
    content: Content
    outcome: Outcome = "unchanged"


@dataclass(frozen=True, slots=True)
class AssetPage:
    """One page of heads, newest first."""

    rows: list[Stored]
    total: int


def ingest_file(
    principal: Principal, reference: str, data: bytes, *, name: str, title: str = ""
) -> Stored:
    """Make a knowledge card of a file of UTF-8 text or Markdown; its name is its source.

    Reading the same file again makes a revision, or nothing when it says the same. Raises
    ``VaultError`` for everything that is no text.
    """
    access.find(principal, reference, "writer")
    draft = AssetDraft(
        body=ingest.read_text(data), title=ingest.title_of(title, name), source=name[:MAX_SOURCE]
    )
    return put(principal, reference, draft)


def put(principal: Principal, reference: str, draft: AssetDraft) -> Stored:
    """Store an asset. Raises ``VaultError`` (``vault_locked`` and what is wrong with a text)."""
    vault = access.find(principal, reference, "writer")
    content = _checked(draft)
    contents = Contents(vault)
    with transaction.atomic():
        take_turn(vault)
        stored = _put(principal, vault, contents, draft.kind, content)
        if stored.outcome != "unchanged":
            _changed(vault)
            action = "vault.put" if stored.outcome == "created" else "vault.revise"
            detail = {"kind": draft.kind, "vault": str(vault.uid)}
            audit.record(principal, action, owner=vault.owner, ids=[stored.asset.pk], detail=detail)
    return stored


def revise(
    principal: Principal,
    reference: str,
    asset_id: str,
    changes: Mapping[str, Any],
    *,
    expected_revision: int | None = None,
) -> Stored:
    """Change title, body or metadata of an asset; the earlier texts stay as a revision.

    Raises ``Conflict`` (``stale``) when ``expected_revision`` is not the present one.
    """
    vault = access.find(principal, reference, "writer")
    contents = Contents(vault)
    with transaction.atomic():
        take_turn(vault)
        row = _row(vault, asset_id)
        if expected_revision not in (None, row.revision):
            raise Conflict(_("Someone else changed this document meanwhile."), code="stale")
        before = contents.whole(row)
        draft = AssetDraft(
            body=changes.get("body", before.body),
            title=changes.get("title", before.title),
            kind=row.kind,
            meta=changes.get("meta", before.meta),
            source=before.source,
        )
        stored = _replace(principal, contents, row, before, _checked(draft))
        if stored.outcome != "unchanged":
            _changed(vault)
            audit.record(
                principal,
                "vault.revise",
                owner=vault.owner,
                ids=[row.pk],
                detail={"kind": row.kind, "vault": str(vault.uid)},
            )
    return stored


def read(
    principal: Principal,
    reference: str,
    asset_id: str,
    revision: int | None = None,
    *,
    kinds: Collection[str] = VaultAsset.Kind.values,
) -> tuple[Stored, VaultAsset | VaultAssetRevision]:
    """An asset whole, as it is or as it was at a revision. One of another kind is not there."""
    vault = access.find(principal, reference, "reader")
    contents = Contents(vault)
    row = _row(vault, asset_id)
    if row.kind not in kinds:
        raise _missing()
    shown: VaultAsset | VaultAssetRevision = row
    if revision is not None and revision != row.revision:
        earlier = row.revisions.filter(revision=revision).first()
        if earlier is None:
            raise NotFound(_("There is no such revision."))
        shown = earlier
    content = contents.whole(shown)
    audit.record(
        principal,
        "vault.read",
        owner=vault.owner,
        ids=[row.pk],
        detail={"vault": str(vault.uid), "revision": shown.revision},
    )
    return Stored(row, content), shown


def list_page(
    principal: Principal, reference: str, *, kind: str = "", limit: int = 50, offset: int = 0
) -> AssetPage:
    """Titles and kinds of what lies in a vault, newest first."""
    vault = access.find(principal, reference, "reader")
    if not 1 <= limit <= MAX_LIMIT or offset < 0:
        message = _("A number from 1 to %(most)s.") % {"most": MAX_LIMIT}
        raise Invalid(message, fields={"limit": message})
    contents = Contents(vault)
    rows = vault.assets.filter(trashed_at__isnull=True).defer("sealed_body", "body")
    if kind:
        rows = rows.filter(kind=kind)
    found = list(rows.order_by("-updated_at", "-id")[offset : offset + limit])
    return AssetPage([Stored(row, contents.head(row)) for row in found], rows.count())


def revisions(principal: Principal, reference: str, asset_id: str) -> list[VaultAssetRevision]:
    """Earlier revisions, newest first, without their texts."""
    vault = access.find(principal, reference, "reader")
    Contents(vault)
    row = _row(vault, asset_id)
    return list(row.revisions.defer("sealed_body", "sealed_head", "body", "title", "meta"))


def delete(principal: Principal, reference: str, asset_id: str, *, purge: bool = False) -> None:
    """Put an asset in the trash, out of the index at once; ``purge`` erases it for good."""
    vault = access.find(principal, reference, "writer")
    with transaction.atomic():
        take_turn(vault)
        row = _row(vault, asset_id, trashed=purge)
        if not vault.is_sealed:
            chunking.remove([row])
            if purge:
                chunking.erase_files()
        if purge:
            row.delete()
        else:
            row.trashed_at = now()
            row.save(update_fields=["trashed_at"])
        _changed(vault)
        action = "vault.purge" if purge else "vault.remove"
        detail = {"vault": str(vault.uid)}
        audit.record(principal, action, owner=vault.owner, ids=[asset_id], detail=detail)


def restore(principal: Principal, reference: str, asset_id: str) -> VaultAsset:
    """Bring an asset back from the trash."""
    vault = access.find(principal, reference, "writer")
    with transaction.atomic():
        take_turn(vault)
        row = _row(vault, asset_id, trashed=True)
        others = vault.assets.filter(trashed_at__isnull=True, source_key=row.source_key)
        if row.source_key and others.exclude(pk=row.pk).exists():
            # Its source was read again meanwhile: what came back is a thing of its own.
            row.source_key = ""
        row.trashed_at = None
        row.save(update_fields=["trashed_at", "source_key"])
        index(vault, [row])
        _changed(vault)
        detail = {"vault": str(vault.uid)}
        audit.record(principal, "vault.restore", owner=vault.owner, ids=[row.pk], detail=detail)
    return row


def index(vault: Vault, rows: Collection[VaultAsset]) -> None:
    """Take assets of an open vault, as they are now, into the tables that are searched."""
    if vault.is_sealed:
        return
    chunking.sync(vault, rows)
    embedding.embed_soon()


def take_turn(vault: Vault) -> None:
    """Have the writers of a vault follow one another, inside of the caller's transaction."""
    Vault.objects.select_for_update().get(pk=vault.pk)


def replace(principal: Principal, contents: Contents, row: VaultAsset, content: Content) -> Outcome:
    """Give an asset other texts, inside of the caller's transaction."""
    return _replace(principal, contents, row, contents.whole(row), content).outcome


def _put(
    principal: Principal, vault: Vault, contents: Contents, kind: str, content: Content
) -> Stored:
    key = contents.source_key(kind, content.source)
    known = vault.assets.filter(trashed_at__isnull=True, source_key=key) if key else None
    row = known.first() if known is not None else None
    if row is not None:
        return _replace(principal, contents, row, contents.whole(row), content)
    moment = now()
    row = VaultAsset(vault=vault, kind=kind, created_at=moment, updated_at=moment)
    contents.write(row, content)
    row.save()
    index(vault, [row])
    return Stored(row, content, "created")


def _replace(
    principal: Principal, contents: Contents, row: VaultAsset, before: Content, after: Content
) -> Stored:
    if before == after:
        return Stored(row, before)
    moment = now()
    VaultAssetRevision.objects.create(
        asset=row,
        revision=row.revision,
        title=row.title,
        body=row.body,
        meta=row.meta,
        sealed_head=bytes(row.sealed_head),
        sealed_body=bytes(row.sealed_body),
        size=row.size,
        written_at=row.updated_at,
        replaced_at=moment,
        replaced_by=principal.label[:160],
    )
    row.revision, row.updated_at = row.revision + 1, moment
    contents.write(row, after)
    row.save()
    index(contents.vault, [row])
    return Stored(row, after, "revised")


def _row(vault: Vault, asset_id: str, *, trashed: bool = False) -> VaultAsset:
    try:
        row = vault.assets.filter(pk=uuid.UUID(str(asset_id))).first()
    except ValueError:
        row = None
    if row is None or (row.trashed_at is not None and not trashed):
        raise _missing()
    return row


def _missing() -> NotFound:
    return NotFound(_("There is no such asset in the vault."))


def _changed(vault: Vault) -> None:
    Vault.objects.filter(pk=vault.pk).update(revision=F("revision") + 1, updated_at=now())


def _checked(draft: AssetDraft) -> Content:
    if draft.kind not in VaultAsset.Kind.values:
        message = _("There is no such kind of asset.")
        raise Invalid(message, fields={"kind": message})
    body = ingest.checked(draft.body)
    if len(body.encode("utf-8")) > capacity.MAX_TEXT_BYTES:
        raise TooLarge(_("An asset holds at most 16 MiB."))
    title = ingest.title_of(draft.title, draft.source or draft.kind)
    if len(draft.source) > MAX_SOURCE:
        raise VaultError("The source's name is too long.", code="invalid_text", reason="source")
    return Content(title, body, _checked_meta(draft.meta), draft.source)


def _checked_meta(meta: Mapping[str, Any]) -> dict[str, Any]:
    """Words and lists of words under short names: what can be indexed and shown."""
    found: dict[str, Any] = {}
    for name, value in meta.items():
        values = value if isinstance(value, list) else [value]
        if not all(isinstance(item, str) for item in (name, *values)):
            message = _("Metadata are texts, or lists of texts.")
            raise Invalid(message, fields={"meta": message})
        for item in (name, *values):
            if item:
                ingest.checked(f"{item}.")
        found[name] = value
    if sum(len(str(item)) for pair in found.items() for item in pair) > MAX_META:
        message = _("The metadata are too long.")
        raise Invalid(message, fields={"meta": message})
    return found
