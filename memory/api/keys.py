"""``/api/keys``: list, make, rotate, revoke."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Router

from memory.api.auth import caller
from memory.api.present import key_out
from memory.api.schemas.access import KeyCreated, KeyIn, KeyList
from memory.api.schemas.base import Success
from memory.services import keys

router = Router(tags=["keys"], by_alias=True)


@router.get("", response=KeyList)
def list_keys(request: HttpRequest) -> dict[str, Any]:
    """Every key, without secrets."""
    return {"data": [key_out(key) for key in keys.list_keys(caller(request))]}


@router.post("", response=KeyCreated)
def create_key(request: HttpRequest, payload: KeyIn) -> dict[str, Any]:
    """Make a key; its secret is in this answer only."""
    key, secret = keys.create(
        caller(request), payload.name, scopes=payload.scopes, expires_at=payload.expires_at
    )
    return {**key_out(key), "secret": secret}


@router.post("/{key_id}/rotate", response=KeyCreated)
def rotate_key(request: HttpRequest, key_id: str) -> dict[str, Any]:
    """Give a key a new secret; the old one stops working."""
    key, secret = keys.rotate(caller(request), key_id)
    return {**key_out(key), "secret": secret}


@router.delete("", response=Success)
def revoke_named(request: HttpRequest, id: str) -> dict[str, Any]:
    """Revoke the key whose id or name is in ``id``; its memories stay."""
    keys.revoke(caller(request), id)
    return {"success": True}


@router.delete("/{key_id}", response=Success)
def revoke_key(request: HttpRequest, key_id: str) -> dict[str, Any]:
    """Revoke a key; its memories stay."""
    keys.revoke(caller(request), key_id)
    return {"success": True}
