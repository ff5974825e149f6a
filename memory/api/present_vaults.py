"""Vaults, assets and results as the API shows them."""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final

from django.utils.translation import gettext as _

from engine.types import Match, Mode
from engine.vault.search import Found
from memory.api.schemas.vaults import AskIn, VaultSearchIn
from memory.clock import iso
from memory.errors import Invalid
from memory.models import Vault, VaultAsset, VaultAssetRevision, VaultGrant
from memory.principal import Principal
from memory.services.vaults import access, lifecycle
from memory.services.vaults.asking import AskView
from memory.services.vaults.assets import Stored
from memory.services.vaults.contents import Content
from memory.services.vaults.searching import SearchRequest, SearchView, Status
from memory.vault_services import Chosen

MODES: Final = {
    "bm25": Mode.KEYWORD,
    "keyword": Mode.KEYWORD,
    "vector": Mode.VECTOR,
    "hybrid": Mode.HYBRID,
}
NAMES: Final = {Mode.KEYWORD: "bm25", Mode.VECTOR: "vector", Mode.HYBRID: "hybrid"}


def vault_out(principal: Principal, vault: Vault) -> dict[str, Any]:
    """A vault."""
    return {
        "id": str(vault.uid),
        "name": vault.name,
        "sealed": vault.is_sealed,
        "unlocked": lifecycle.is_unlocked(vault),
        "deviceOnly": vault.is_device_only,
        "autoLockMinutes": vault.auto_lock_minutes,
        "embeddingModel": vault.embedding_model,
        "embeddingDim": vault.embedding_dim,
        "role": access.role_of(principal, vault),
        "apiKeyId": str(vault.owner.uid),
        "apiKeyName": vault.owner.name,
        "createdAt": iso(vault.created_at),
        "updatedAt": iso(vault.updated_at),
    }


def status_out(principal: Principal, found: Status) -> dict[str, Any]:
    """A vault with its state."""
    figures = found.figures
    return {
        **vault_out(principal, found.vault),
        "assets": found.assets,
        "index": {
            "generation": found.vault.revision,
            "ready": figures.is_indexed,
            "place": found.place,
            "chunks": figures.chunks,
            "embedded": figures.embedded,
            "textBytes": figures.text_bytes,
            "signature": figures.signature,
        },
        "limits": found.limits,
        "embedding": {
            "backend": found.backend.kind,
            "model": found.backend.model,
            "host": found.backend.host,
            "origin": found.backend.origin,
            "provider": found.backend.provider,
            "problem": found.backend.problem,
        },
        "generation": _service(found.services.generation),
        "rerank": _service(found.services.rerank),
        "generationHost": found.generation_host,
        "warnings": found.warnings,
    }


def _service(chosen: Chosen | None) -> dict[str, str] | None:
    if chosen is None:
        return None
    return {
        "model": chosen.model,
        "host": chosen.host,
        "origin": chosen.origin,
        "provider": chosen.provider,
        "problem": chosen.problem,
    }


def grant_out(grant: VaultGrant) -> dict[str, Any]:
    """A grant."""
    return {
        "apiKeyId": str(grant.key.uid),
        "apiKeyName": grant.key.name,
        "role": grant.role,
        "expiresAt": iso(grant.expires_at),
        "createdAt": iso(grant.created_at),
    }


def head_out(asset: VaultAsset, content: Content) -> dict[str, Any]:
    """An asset without its body."""
    return {
        "id": str(asset.pk),
        "kind": asset.kind,
        "revision": asset.revision,
        "title": content.title,
        "meta": dict(content.meta),
        "source": content.source,
        "size": asset.size,
        "createdAt": iso(asset.created_at),
        "updatedAt": iso(asset.updated_at),
    }


def stored_out(stored: Stored) -> dict[str, Any]:
    """An asset that was stored."""
    return {**head_out(stored.asset, stored.content), "outcome": stored.outcome}


def whole_out(stored: Stored, shown: VaultAsset | VaultAssetRevision) -> dict[str, Any]:
    """An asset whole, at the revision that was asked for."""
    head = head_out(stored.asset, stored.content)
    written = shown.updated_at if isinstance(shown, VaultAsset) else shown.written_at
    return {
        **head,
        "revision": shown.revision,
        "size": shown.size,
        "updatedAt": iso(written),
        "body": stored.content.body,
    }


def revision_out(row: VaultAssetRevision) -> dict[str, Any]:
    """An earlier revision."""
    return {
        "revision": row.revision,
        "size": row.size,
        "writtenAt": iso(row.written_at),
        "replacedAt": iso(row.replaced_at),
        "replacedBy": row.replaced_by,
    }


def search_request(vault: str, payload: VaultSearchIn) -> SearchRequest:
    """The search that a body asks for."""
    return SearchRequest(
        vault,
        payload.query,
        MODES[payload.mode],
        Match(payload.match_mode),
        payload.limit,
        cards_only=payload.cards_only,
        rerank=payload.rerank,
        grouped=payload.grouped,
    )


def ask_request(vault: str, payload: AskIn) -> SearchRequest:
    """The search that a question begins with."""
    return SearchRequest(
        vault,
        payload.question,
        MODES[payload.mode],
        Match(payload.match_mode),
        payload.limit,
        cards_only=payload.cards_only,
        rerank=payload.rerank,
    )


def search_out(view: SearchView) -> dict[str, Any]:
    """A result in the names of the second seed."""
    return {
        "vault_id": str(view.vault.uid),
        "query": view.request.query,
        "mode": NAMES[view.request.mode],
        "match_mode": view.request.match.value,
        "reranked": view.reranked,
        "index": {
            "generation": view.vault.revision,
            "chunks": view.chunks,
            "embedded": view.embedded,
        },
        "results": [_chunk(item) for item in view.found],
        "warnings": view.warnings,
    }


def ask_out(view: AskView) -> dict[str, Any]:
    """An answer with its sources."""
    answer = view.asked.answer
    return {
        **search_out(view.search),
        "answer": answer.text,
        "citations": list(answer.citations),
        "insufficient_evidence": answer.is_insufficient,
    }


def decoded(text: str) -> bytes:
    """The bytes of base64. Raises ``Invalid``."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        message = _("This is not base64.")
        raise Invalid(message, fields={"content_base64": message}) from None


def _chunk(item: Found) -> dict[str, Any]:
    chunk = item.chunk
    return {
        "label": item.label,
        "id": chunk.asset,
        "revision": chunk.revision,
        "kind": chunk.kind,
        "title": chunk.passage.title,
        "chunk_hash": chunk.chunk_hash,
        "byte_start": chunk.byte_start,
        "byte_end": chunk.byte_end,
        "text": chunk.passage.body,
        "score": item.score,
        "scores": {
            "bm25": item.bm25,
            "vector": item.vector,
            "rrf": item.rrf,
            "rerank": item.rerank,
        },
    }
