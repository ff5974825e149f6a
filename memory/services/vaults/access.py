"""Which vaults a caller may use and as what, and whether work that was begun is still allowed."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from engine.vault.errors import VaultError
from engine.vault.keeper import Version
from memory import vault_services, vault_wiring
from memory.clock import now
from memory.errors import Forbidden, NotFound
from memory.models import ApiKey, Vault, VaultGrant
from memory.principal import Principal
from memory.services import access
from memory.services.drafts import is_storable

RANK: Final = {"reader": 1, "writer": 2, "manager": 3}
NEEDS: Final = {"reader": "read", "writer": "write", "manager": "write"}
"""The scope of a key that a role goes with."""
LOOK_EVERY_S: Final = 0.05
_NUMBERS: Final = ("revision", "policy_revision", "lock_generation")


def visible(principal: Principal) -> QuerySet[Vault]:
    """The vaults a caller may know of: a manager's and the studio's are all."""
    rows = Vault.objects.select_related("owner")
    if access.may_name_owners(principal):
        return rows
    # A subquery, so that a vault with a grant and an owner comes once.
    granted = VaultGrant.objects.filter(_live(), key=principal.owner).values("vault")
    return rows.filter(Q(owner=principal.owner) | Q(pk__in=granted))


def role_of(principal: Principal, vault: Vault) -> str:
    """What a caller is in a vault; empty when nothing."""
    if access.may_name_owners(principal) or vault.owner_id == principal.owner:
        return "manager"
    grant = VaultGrant.objects.filter(_live(), vault=vault, key=principal.owner).first()
    return grant.role if grant is not None else ""


def find(principal: Principal, reference: str | uuid.UUID, role: str) -> Vault:
    """The vault of this id or name, for a caller who is at least ``role`` in it.

    Raises ``NotFound`` (``vault_not_found``) also for one that the caller may not know of, and
    ``Forbidden`` for one it may only use otherwise.
    """
    access.require(principal, NEEDS[role])
    vault = _named(visible(principal), str(reference))
    if vault is None:
        raise NotFound(_("There is no such vault."), code="vault_not_found")
    if RANK.get(role_of(principal, vault), 0) < RANK[role]:
        raise Forbidden(_("Your role in this vault does not allow that."), code="not_authorized")
    return vault


def version_of(vault: Vault) -> Version:
    """The numbers under which work begins."""
    return Version(vault.revision, vault.policy_revision, vault.lock_generation)


@dataclass
class Watch:
    """Looks whether work that began may go on: before and after each step, between attempts.

    Calling it reads the vault and the caller's rights anew, and raises ``VaultError``:
    ``vault_locked``, ``source_changed``, ``not_authorized``, ``cancelled``, ``vault_not_found``.
    ``often`` may be called all the time: it looks at the keeper each time, at the rows now and
    then.
    """

    principal: Principal
    vault: Vault
    role: str = "reader"
    version: Version = field(init=False)
    services: int = field(init=False)
    """The revision of the chosen services under which the work began."""
    _looked: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        self.version = version_of(self.vault)
        self.services = vault_services.stored().revision

    def __call__(self) -> None:
        # Only values are read: this is done at every step.
        rows = Vault.objects.filter(pk=self.vault.pk).order_by()
        found = rows.values_list(
            *_NUMBERS, "owner__revoked_at", "owner__expires_at", vault_services.revision_now()
        ).first()
        if found is None:
            raise VaultError("The vault is gone.", code="vault_not_found")
        *numbers, revoked_at, expires_at, services = found
        current = Version(*numbers)
        if current.lock != self.version.lock:
            vault_wiring.keeper().lock(str(self.vault.uid))
            raise VaultError("The vault was locked meanwhile.", code="vault_locked")
        self._check_key()
        self._check_caller(is_owner_valid=not revoked_at and not _is_over(expires_at))
        if current.policy != self.version.policy:
            raise VaultError("The vault's rules have changed meanwhile.", code="cancelled")
        if current.revision != self.version.revision:
            raise VaultError("The vault's content has changed meanwhile.", code="source_changed")
        if (services or 0) != self.services:
            message = "The services of vaults have changed meanwhile."
            raise VaultError(message, code="source_changed", reason="services")
        self._looked = time.monotonic()

    def often(self) -> None:
        """The cheap check for loops."""
        self._check_key()
        if time.monotonic() - self._looked >= LOOK_EVERY_S:
            self()

    def _check_key(self) -> None:
        if self.vault.is_sealed:
            vault_wiring.require_keeper().sealer(str(self.vault.uid), self.version.lock)

    def _check_caller(self, *, is_owner_valid: bool) -> None:
        """The caller's key and role, in one query at most. A vault never changes its owner."""
        owner = self.principal.owner
        if self.principal.kind != "key":
            return
        valid = Q(revoked_at__isnull=True) & _live()
        if self.vault.owner_id == owner:
            is_valid = is_owner_valid
        elif self.principal.may("manage"):
            is_valid = ApiKey.objects.filter(valid, pk=owner or 0).order_by().exists()
        else:
            grants = VaultGrant.objects.filter(_live(), vault=self.vault, key=owner).order_by()
            role = grants.filter(_live("key__"), key__revoked_at__isnull=True)
            held = role.values_list("role", flat=True).first() or ""
            is_valid = RANK.get(held, 0) >= RANK[self.role]
        if not is_valid:
            raise VaultError("Your key or grant has ended meanwhile.", code="not_authorized")


def _named(rows: QuerySet[Vault], reference: str) -> Vault | None:
    try:
        return rows.filter(uid=uuid.UUID(reference)).first()
    except ValueError:
        found = list(rows.filter(name=reference)[:2]) if is_storable(reference) else []
    # Two owners may have vaults of one name: then only the id tells which is meant.
    return found[0] if len(found) == 1 else None


def _is_over(moment: datetime | None) -> bool:
    return moment is not None and moment <= now()


def _live(prefix: str = "") -> Q:
    name = f"{prefix}expires_at"
    return Q(**{f"{name}__isnull": True}) | Q(**{f"{name}__gt": now()})
