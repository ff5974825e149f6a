"""``/api/vaults``: their life, their grants, searching and asking."""

from __future__ import annotations

import base64
import io
from typing import Any, Final

from django.http import HttpRequest
from ninja import Router

from memory.api import present_vaults as present
from memory.api.auth import caller
from memory.api.schemas.base import Success
from memory.api.schemas.vaults import (
    AskIn,
    AskOut,
    ExportIn,
    ExportOut,
    GrantIn,
    GrantList,
    GrantOut,
    ImportIn,
    ImportOut,
    OpeningIn,
    PassphraseIn,
    PreparedOut,
    PrepareIn,
    RecoveryOut,
    VaultChange,
    VaultIn,
    VaultList,
    VaultMade,
    VaultOut,
    VaultSearchIn,
    VaultSearchOut,
    VaultStatus,
)
from memory.services.vaults import asking, grants, lifecycle, parcels, searching
from memory.services.vaults.lifecycle import VaultDraft
from memory.services.vaults.parcels import Destination

router = Router(tags=["vaults"], by_alias=True)

RENAMED: Final = {"device_only": "is_device_only"}


@router.get("", response=VaultList)
def list_vaults(request: HttpRequest) -> dict[str, Any]:
    """The vaults that the caller owns or has a grant to."""
    principal = caller(request)
    found = lifecycle.list_vaults(principal)
    return {"data": [present.vault_out(principal, vault) for vault in found]}


@router.post("", response=VaultMade)
def create_vault(request: HttpRequest, payload: VaultIn) -> dict[str, Any]:
    """Make a vault. The recovery key of a sealed one is in this answer only."""
    principal = caller(request)
    draft = VaultDraft(
        payload.name,
        is_sealed=payload.sealed,
        passphrase=payload.passphrase,
        is_device_only=payload.device_only,
        auto_lock_minutes=payload.auto_lock_minutes,
        owner=payload.api_key_id,
    )
    made = lifecycle.create(principal, draft)
    return {
        **present.vault_out(principal, made.vault),
        "recoveryKey": made.recovery_key or None,
    }


@router.post("/import", response=ImportOut)
def import_vault(request: HttpRequest, payload: ImportIn) -> dict[str, Any]:
    """Read an exported vault: all of it, or nothing when it is damaged."""
    destination = Destination(payload.into, payload.name, is_open=not payload.sealed)
    file = io.BytesIO(present.decoded(payload.content_base64))
    done = parcels.read(caller(request), file, payload.passphrase, destination)
    return {
        "id": str(done.vault.uid),
        "name": done.vault.name,
        "recoveryKey": (done.made.recovery_key or None) if done.made else None,
        "created": done.created,
        "revised": done.revised,
        "unchanged": done.unchanged,
    }


@router.get("/{vault}", response=VaultStatus)
def vault_status(request: HttpRequest, vault: str) -> dict[str, Any]:
    """A vault, by id or name, with the state of its index."""
    principal = caller(request)
    return present.status_out(principal, searching.status(principal, vault))


@router.put("/{vault}", response=VaultOut)
def update_vault(request: HttpRequest, vault: str, payload: VaultChange) -> dict[str, Any]:
    """Change a vault's rules. What works with it at this moment gives no result."""
    principal = caller(request)
    sent = payload.model_dump(exclude_unset=True)
    changes = {
        RENAMED.get(name, name): value
        for name, value in sent.items()
        if value is not None or name == "embedding_dim"
    }
    return present.vault_out(principal, lifecycle.update(principal, vault, changes))


@router.delete("/{vault}", response=Success)
def delete_vault(request: HttpRequest, vault: str) -> dict[str, Any]:
    """Erase a vault with everything in it, for good."""
    lifecycle.delete(caller(request), vault)
    return {"success": True}


@router.post("/{vault}/unlock", response=VaultOut)
def unlock_vault(request: HttpRequest, vault: str, payload: OpeningIn) -> dict[str, Any]:
    """Unlock a sealed vault for all who may use it."""
    principal = caller(request)
    found = lifecycle.unlock(
        principal, vault, passphrase=payload.passphrase, recovery_key=payload.recovery_key
    )
    return present.vault_out(principal, found)


@router.post("/{vault}/lock", response=VaultOut)
def lock_vault(request: HttpRequest, vault: str) -> dict[str, Any]:
    """Lock a vault at once: what works with it gives no result.

    A request that was sent to a service already cannot be recalled.
    """
    principal = caller(request)
    return present.vault_out(principal, lifecycle.lock(principal, vault))


@router.post("/{vault}/passphrase", response=RecoveryOut)
def change_passphrase(request: HttpRequest, vault: str, payload: PassphraseIn) -> dict[str, Any]:
    """Give a vault another passphrase, and a new recovery key."""
    recovery = lifecycle.change_passphrase(
        caller(request),
        vault,
        payload.new_passphrase,
        passphrase=payload.passphrase,
        recovery_key=payload.recovery_key,
    )
    return {"recoveryKey": recovery}


@router.post("/{vault}/export", response=ExportOut)
def export_vault(request: HttpRequest, vault: str, payload: ExportIn) -> dict[str, Any]:
    """A vault with all revisions as an encrypted file, which only the passphrase opens."""
    file = io.BytesIO()
    count = parcels.write(caller(request), vault, file, payload.passphrase)
    return {"assets": count, "contentBase64": base64.b64encode(file.getvalue()).decode()}


@router.get("/{vault}/grants", response=GrantList)
def list_grants(request: HttpRequest, vault: str) -> dict[str, Any]:
    """Who else may use a vault."""
    found = grants.list_grants(caller(request), vault)
    return {"data": [present.grant_out(grant) for grant in found]}


@router.put("/{vault}/grants", response=GrantOut)
def give_grant(request: HttpRequest, vault: str, payload: GrantIn) -> dict[str, Any]:
    """Give a key a role in a vault, in place of the one it had."""
    grant = grants.give(
        caller(request), vault, payload.key, payload.role, expires_at=payload.expires_at
    )
    return present.grant_out(grant)


@router.delete("/{vault}/grants/{key}", response=Success)
def revoke_grant(request: HttpRequest, vault: str, key: str) -> dict[str, Any]:
    """End a key's grant at once."""
    grants.revoke(caller(request), vault, key)
    return {"success": True}


@router.post("/{vault}/search", response=VaultSearchOut)
def search_vault(request: HttpRequest, vault: str, payload: VaultSearchIn) -> dict[str, Any]:
    """Search the memories and knowledge cards of a vault."""
    found = searching.find(caller(request), present.search_request(vault, payload))
    return present.search_out(found)


@router.post("/{vault}/index", response=PreparedOut)
def prepare_vault(request: HttpRequest, vault: str, payload: PrepareIn) -> dict[str, Any]:
    """Build the index and its vectors now, so that the first search need not."""
    done = searching.prepare(caller(request), vault, budget_s=payload.budget_seconds)
    return {
        "vault_id": str(done.vault.uid),
        "chunks": done.chunks,
        "embedded": done.embedded,
        "made": done.made,
        "model": done.model,
        "complete": done.is_complete,
    }


@router.post("/{vault}/ask", response=AskOut)
def ask_vault(request: HttpRequest, vault: str, payload: AskIn) -> dict[str, Any]:
    """Answer a question from a vault. Needs ``[rag.generation]`` in the configuration."""
    found = asking.answer(caller(request), present.ask_request(vault, payload))
    return present.ask_out(found)
