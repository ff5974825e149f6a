"""What the process that keeps keys does by itself: no key stays longer than it may."""

from __future__ import annotations

from engine.vault.keeper import Keeper
from memory import vault_wiring
from memory.models import Vault


def sweep(keeper: Keeper | None = None) -> list[str]:
    """Lock what nobody used for its time, and what was locked or erased by another process.

    Returns the ids of the vaults. Asks the database only while a vault is unlocked.
    """
    keeper = keeper or vault_wiring.keeper()
    locked = keeper.sweep()
    held = keeper.generations()
    if not held:
        return locked
    rows = Vault.objects.filter(uid__in=list(held)).order_by()
    current = {str(uid): number for uid, number in rows.values_list("uid", "lock_generation")}
    void = [vault for vault, number in held.items() if current.get(vault) != number]
    for vault in void:
        keeper.lock(vault)
    return [*locked, *void]


def let_go() -> None:
    """Forget every key: this process keeps them no more."""
    vault_wiring.keeper().lock_all()
