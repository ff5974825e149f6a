"""The life of a vault: made, unlocked, locked, given other rules or another passphrase, removed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils.translation import gettext as _

from engine.errors import EmbeddingFailed
from engine.vault import keys
from engine.vault.errors import VaultError
from engine.vault.keys import VaultKey
from memory import vault_wiring
from memory.clock import now
from memory.errors import Conflict, Invalid
from memory.models import Vault
from memory.principal import Principal
from memory.services import access as owners
from memory.services import audit
from memory.services.drafts import is_storable
from memory.services.vaults import access, chunking, respacing

MAX_NAME: Final = 120
MOST_MINUTES: Final = 24 * 60
POLICY: Final = frozenset(
    {"name", "is_device_only", "auto_lock_minutes", "embedding_model", "embedding_dim"}
)
SPACE: Final = frozenset({"is_device_only", "embedding_model", "embedding_dim"})
"""What decides which vectors an open vault has, and where they may lie."""


@dataclass(frozen=True, slots=True)
class VaultDraft:
    """A vault to make. ``passphrase`` is needed by a sealed one, and kept nowhere."""

    name: str
    is_sealed: bool = True
    passphrase: str = ""
    is_device_only: bool = False
    auto_lock_minutes: int = 15
    owner: str | None = None

    def __repr__(self) -> str:
        return f"VaultDraft({self.name!r})"


@dataclass(frozen=True, slots=True)
class Made:
    """A new vault. ``recovery_key`` is shown once; empty for an open vault."""

    vault: Vault
    recovery_key: str = ""


def create(principal: Principal, draft: VaultDraft) -> Made:
    """Make a vault; a sealed one is unlocked at once, since its passphrase was just given."""
    owners.require(principal, "write")
    owner = owners.write_owner(principal, draft.owner)
    moment = now()
    vault = Vault(
        owner=owner,
        name=draft.name.strip(),
        is_sealed=draft.is_sealed,
        is_device_only=draft.is_device_only,
        auto_lock_minutes=draft.auto_lock_minutes,
        created_at=moment,
        updated_at=moment,
    )
    _check({"name": vault.name, "auto_lock_minutes": vault.auto_lock_minutes})
    if not draft.is_sealed:
        _save_new(principal, vault)
        return Made(vault)
    keeper = vault_wiring.require_keeper()
    key, recovery = VaultKey.new(), keys.new_recovery()
    vault.passphrase_envelope = _wrapped(vault, key, draft.passphrase)
    vault.recovery_envelope = keys.wrap_recovery(key, recovery, vault=str(vault.uid))
    _save_new(principal, vault)
    keeper.unlock(
        str(vault.uid),
        key,
        generation=vault.lock_generation,
        auto_lock_s=vault.auto_lock_minutes * 60,
    )
    return Made(vault, recovery)


def list_vaults(principal: Principal) -> list[Vault]:
    """The vaults a caller may know of, by name."""
    owners.require(principal, "read")
    return list(access.visible(principal))


def get(principal: Principal, reference: str) -> Vault:
    """One vault."""
    return access.find(principal, reference, "reader")


def is_unlocked(vault: Vault) -> bool:
    """Whether a vault can be read now; an open one always can."""
    if not vault.is_sealed:
        return True
    return vault_wiring.keeper().is_unlocked(str(vault.uid), vault.lock_generation)


def watch(principal: Principal, reference: str, *, is_used: bool = False) -> bool:
    """Whether a vault can still be read, asked by what shows its texts.

    To ask is no use of the vault; where its reader is writing, it is.
    """
    vault = get(principal, reference)
    if vault.is_sealed and is_used:
        keeper = vault_wiring.keeper()
        return keeper.is_unlocked(str(vault.uid), vault.lock_generation, uses=True)
    return is_unlocked(vault)


def unlock(
    principal: Principal, reference: str, *, passphrase: str = "", recovery_key: str = ""
) -> Vault:
    """Unlock a sealed vault by its passphrase or its recovery key, for all who may use it.

    Raises ``VaultError``: ``wrong_passphrase``, ``rate_limited`` after several of them,
    ``needs_embedded``.
    """
    vault = access.find(principal, reference, "reader")
    if not vault.is_sealed:
        return vault
    key = _opened(vault, passphrase, recovery_key)
    vault_wiring.require_keeper().unlock(
        str(vault.uid),
        key,
        generation=vault.lock_generation,
        auto_lock_s=vault.auto_lock_minutes * 60,
    )
    if passphrase and not keys.is_current(vault.passphrase_envelope, vault_wiring.cost()):
        _rewrap(vault, key, passphrase)
    audit.record(principal, "vault.unlock", owner=vault.owner, ids=[vault.uid])
    return vault


def lock(principal: Principal, reference: str) -> Vault:
    """Lock a vault at once, in every process; what works with it gives no result any more.

    The indexes and vectors of all vaults are erased, as the second seed has it.
    """
    vault = access.find(principal, reference, "reader")
    if not vault.is_sealed:
        return vault
    Vault.objects.filter(pk=vault.pk).update(lock_generation=F("lock_generation") + 1)
    vault_wiring.keeper().lock(str(vault.uid))
    vault.refresh_from_db(fields=["lock_generation"])
    audit.record(principal, "vault.lock", owner=vault.owner, ids=[vault.uid])
    return vault


def change_passphrase(
    principal: Principal,
    reference: str,
    new: str,
    *,
    passphrase: str = "",
    recovery_key: str = "",
) -> str:
    """Wrap the vault's key anew; no row is touched. The answer is a new recovery key.

    The earlier passphrase and the earlier recovery key open nothing any more.
    """
    vault = access.find(principal, reference, "manager")
    if not vault.is_sealed:
        raise Invalid(_("An open vault has no passphrase."))
    keys.check_passphrase(new)
    key, recovery = _opened(vault, passphrase, recovery_key), keys.new_recovery()
    vault.passphrase_envelope = _wrapped(vault, key, new)
    vault.recovery_envelope = keys.wrap_recovery(key, recovery, vault=str(vault.uid))
    key.wipe()
    vault.updated_at = now()
    with transaction.atomic():
        vault.save(update_fields=["passphrase_envelope", "recovery_envelope", "updated_at"])
        audit.record(principal, "vault.passphrase", owner=vault.owner, ids=[vault.uid])
    return recovery


def update(principal: Principal, reference: str, changes: Mapping[str, Any]) -> Vault:
    """Change a vault's name, device-only mark, auto-lock or model; work that runs is void."""
    vault = access.find(principal, reference, "manager")
    given = {name: value for name, value in changes.items() if name in POLICY}
    if "name" in given:
        given["name"] = str(given["name"]).strip()
    _check(given)
    _check_model(vault, given)
    given |= {"policy_revision": F("policy_revision") + 1, "updated_at": now()}
    try:
        with transaction.atomic():
            Vault.objects.filter(pk=vault.pk).update(**given)
            if not vault.is_sealed and SPACE.intersection(given):
                respacing.follow(vault.pk)
            audit.record(principal, "vault.update", owner=vault.owner, ids=[vault.uid])
    except IntegrityError:
        raise _taken() from None
    vault.refresh_from_db()
    return vault


def delete(principal: Principal, reference: str) -> Vault:
    """Erase a vault with everything in it, for good."""
    vault = access.find(principal, reference, "manager")
    uid = vault.uid
    if not vault.is_sealed:
        chunking.remove_most(vault)
    with transaction.atomic():
        audit.record(principal, "vault.delete", owner=vault.owner, ids=[uid])
        if not vault.is_sealed:
            chunking.remove_all(vault)
            chunking.erase_files()
        vault.delete()
    vault_wiring.keeper().lock(str(uid))
    vault_wiring.keeper().drop(str(uid))
    return vault


def _opened(vault: Vault, passphrase: str, recovery_key: str) -> VaultKey:
    keeper, uid = vault_wiring.require_keeper(), str(vault.uid)
    if not passphrase and not recovery_key:
        message = _("A passphrase or a recovery key is needed.")
        raise Invalid(message, fields={"passphrase": message})
    keeper.check_pace(uid)
    try:
        if passphrase:
            return keys.unwrap(vault.passphrase_envelope, passphrase, vault=uid)
        return keys.unwrap_recovery(vault.recovery_envelope, recovery_key, vault=uid)
    except VaultError as error:
        if error.code == "wrong_passphrase":
            keeper.missed(uid)
        raise


def _wrapped(vault: Vault, key: VaultKey, passphrase: str) -> str:
    return keys.wrap(key, passphrase, vault=str(vault.uid), cost=vault_wiring.cost())


def _rewrap(vault: Vault, key: VaultKey, passphrase: str) -> None:
    """Bring an envelope to what a new one costs."""
    fresh = _wrapped(vault, key, passphrase)
    Vault.objects.filter(pk=vault.pk).update(passphrase_envelope=fresh)


def _save_new(principal: Principal, vault: Vault) -> None:
    try:
        with transaction.atomic():
            vault.save()
            audit.record(principal, "vault.create", owner=vault.owner, ids=[vault.uid])
    except IntegrityError:
        raise _taken() from None


def _taken() -> Conflict:
    message = _("You have another vault of this name.")
    return Conflict(message, fields={"name": message})


def _check(values: Mapping[str, Any]) -> None:
    problems: dict[str, str] = {}
    name = values.get("name", "name")
    if not name or len(name) > MAX_NAME or not is_storable(name):
        problems["name"] = _("A name of 1 to 120 characters is needed.")
    if not 0 <= values.get("auto_lock_minutes", 0) <= MOST_MINUTES:
        problems["autoLockMinutes"] = _("Minutes from 0 (never) to 1,440.")
    if problems:
        raise Invalid(_("The vault cannot be like that."), fields=problems)


def _check_model(vault: Vault, given: Mapping[str, Any]) -> None:
    """Refuse a model that is no local encoder, or has no vectors of that length."""
    from engine.embed import catalogue
    from memory.model_facts import models_dir

    name = given.get("embedding_model", vault.embedding_model)
    dim = given.get("embedding_dim", vault.embedding_dim)
    if not name and dim is None:
        return
    try:
        entry = catalogue.find(name or vault_wiring.GEMMA, models_dir())
    except EmbeddingFailed:
        entry = None
    if entry is None or entry.kind == "cross-encoder":
        message = _("There is no such embedding model.")
        raise Invalid(message, fields={"embeddingModel": message})
    if dim is not None and dim not in entry.dimensions:
        message = _("This model has no vectors of that length.")
        raise Invalid(message, fields={"embeddingDim": message})
