"""Letting other keys use a vault, until a time or until revoked."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.db.models import F
from django.utils.translation import gettext as _

from memory.clock import now
from memory.errors import Invalid, NotFound
from memory.models import Vault, VaultGrant
from memory.principal import Principal
from memory.services import access as owners
from memory.services import audit
from memory.services.drafts import is_storable
from memory.services.vaults import access


def list_grants(principal: Principal, reference: str) -> list[VaultGrant]:
    """Who else may use a vault; ended grants too."""
    vault = access.find(principal, reference, "manager")
    return list(vault.grants.select_related("key"))


def give(
    principal: Principal,
    reference: str,
    key: str,
    role: str,
    *,
    expires_at: datetime | None = None,
) -> VaultGrant:
    """Give a key a role; a second grant replaces its first. Work under other rules is void."""
    vault = access.find(principal, reference, "manager")
    if role not in access.RANK:
        message = _("Roles are reader, writer and manager.")
        raise Invalid(message, fields={"role": message})
    if expires_at is not None and expires_at <= now():
        message = _("This time is over.")
        raise Invalid(message, fields={"expires_at": message})
    holder = owners.find(key)
    if holder.pk == vault.owner_id:
        message = _("The vault is this key's own.")
        raise Invalid(message, fields={"key": message})
    with transaction.atomic():
        grant, _made = VaultGrant.objects.update_or_create(
            vault=vault,
            key=holder,
            defaults={"role": role, "expires_at": expires_at},
            create_defaults={"role": role, "expires_at": expires_at, "created_at": now()},
        )
        _rules_changed(vault)
        detail = {"key": str(holder.uid), "role": role}
        audit.record(principal, "vault.grant", owner=vault.owner, ids=[vault.uid], detail=detail)
    return grant


def revoke(principal: Principal, reference: str, key: str) -> None:
    """End a key's grant at once, also for work that runs."""
    vault = access.find(principal, reference, "manager")
    if not is_storable(key):
        raise NotFound(_("This key has no grant."))
    holder = owners.find(key)
    with transaction.atomic():
        count, _rows = vault.grants.filter(key=holder).delete()
        if not count:
            raise NotFound(_("This key has no grant."))
        _rules_changed(vault)
        detail = {"key": str(holder.uid)}
        audit.record(principal, "vault.revoke", owner=vault.owner, ids=[vault.uid], detail=detail)


def _rules_changed(vault: Vault) -> None:
    Vault.objects.filter(pk=vault.pk).update(policy_revision=F("policy_revision") + 1)
