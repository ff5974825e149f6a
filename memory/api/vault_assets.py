"""``/api/vaults/{vault}/assets`` and ``…/ingest``: what lies in a vault."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Query, Router

from memory.api import present_vaults as present
from memory.api.auth import caller
from memory.api.schemas.base import Success
from memory.api.schemas.vaults import (
    AssetChange,
    AssetIn,
    AssetList,
    AssetOut,
    AssetQuery,
    AssetStored,
    IngestIn,
    RevisionList,
)
from memory.services.vaults import assets
from memory.services.vaults.assets import AssetDraft

router = Router(tags=["vaults"], by_alias=True)


@router.post("/{vault}/ingest", response=AssetStored)
def ingest(request: HttpRequest, vault: str, payload: IngestIn) -> dict[str, Any]:
    """Make a knowledge card of a file of UTF-8 text or Markdown; everything else is refused.

    The same file name again makes a revision, or nothing when the text is the same.
    """
    stored = assets.ingest_file(
        caller(request),
        vault,
        present.decoded(payload.content_base64),
        name=payload.name,
        title=payload.title,
    )
    return present.stored_out(stored)


@router.get("/{vault}/assets", response=AssetList)
def list_assets(request: HttpRequest, vault: str, wanted: Query[AssetQuery]) -> dict[str, Any]:
    """Titles and kinds, newest first."""
    page = assets.list_page(
        caller(request), vault, kind=wanted.kind or "", limit=wanted.limit, offset=wanted.offset
    )
    return {
        "data": [present.head_out(row.asset, row.content) for row in page.rows],
        "total": page.total,
    }


@router.post("/{vault}/assets", response=AssetStored)
def put_asset(request: HttpRequest, vault: str, payload: AssetIn) -> dict[str, Any]:
    """Store a memory, a card, private content, a credential or a file.

    Only memories and cards are ever searched or sent.
    """
    draft = AssetDraft(
        body=payload.body,
        title=payload.title,
        kind=payload.kind,
        meta=payload.meta,
        source=payload.source,
    )
    return present.stored_out(assets.put(caller(request), vault, draft))


@router.get("/{vault}/assets/{asset}", response=AssetOut)
def read_asset(
    request: HttpRequest, vault: str, asset: str, revision: int | None = None
) -> dict[str, Any]:
    """An asset whole, as it is or as it was at a revision."""
    return present.whole_out(*assets.read(caller(request), vault, asset, revision))


@router.put("/{vault}/assets/{asset}", response=AssetStored)
def change_asset(
    request: HttpRequest, vault: str, asset: str, payload: AssetChange
) -> dict[str, Any]:
    """Change an asset; what it was stays as a revision."""
    sent = payload.model_dump(exclude_unset=True, exclude={"revision"})
    changes = {name: value for name, value in sent.items() if value is not None}
    stored = assets.revise(
        caller(request), vault, asset, changes, expected_revision=payload.revision
    )
    return present.stored_out(stored)


@router.delete("/{vault}/assets/{asset}", response=Success)
def delete_asset(
    request: HttpRequest, vault: str, asset: str, purge: bool = False
) -> dict[str, Any]:
    """Put an asset in the trash for 30 days; ``purge`` erases it for good."""
    assets.delete(caller(request), vault, asset, purge=purge)
    return {"success": True}


@router.post("/{vault}/assets/{asset}/restore", response=Success)
def restore_asset(request: HttpRequest, vault: str, asset: str) -> dict[str, Any]:
    """Bring an asset back from the trash."""
    assets.restore(caller(request), vault, asset)
    return {"success": True}


@router.get("/{vault}/assets/{asset}/revisions", response=RevisionList)
def list_revisions(request: HttpRequest, vault: str, asset: str) -> dict[str, Any]:
    """Earlier revisions of an asset."""
    rows = assets.revisions(caller(request), vault, asset)
    return {"data": [present.revision_out(row) for row in rows]}
