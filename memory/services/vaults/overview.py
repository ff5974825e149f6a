"""All vaults at a glance: state, what lies in them, what is indexed. No text is read."""

from __future__ import annotations

from dataclasses import dataclass, field

from django.db.models import Count

from engine.vault.keeper import Figures
from memory import vault_wiring
from memory.models import Vault, VaultAsset
from memory.principal import Principal
from memory.services import embedding
from memory.services.vaults import lifecycle, reached


@dataclass(frozen=True, slots=True)
class Glance:
    """One vault. ``seconds_left`` until it locks by itself; None when it does not."""

    vault: Vault
    is_unlocked: bool
    seconds_left: float | None
    figures: Figures
    assets: dict[str, int] = field(default_factory=dict)

    @property
    def searchable(self) -> int:
        """Cards and memories."""
        return sum(self.assets.get(kind, 0) for kind in VaultAsset.SEARCHABLE)


def glance(vault: Vault, assets: dict[str, int], figures: Figures) -> Glance:
    """A vault with its state."""
    uid = str(vault.uid)
    is_unlocked = lifecycle.is_unlocked(vault)
    left = vault_wiring.keeper().seconds_left(uid) if vault.is_sealed and is_unlocked else None
    return Glance(vault, is_unlocked, left, figures, assets)


def list_all(principal: Principal, owner: str = "") -> list[Glance]:
    """The vaults a caller may know of, or those of one owner (its public id), by name."""
    found = lifecycle.list_vaults(principal)
    if owner:
        found = [vault for vault in found if str(vault.owner.uid) == owner]
    counts = counted([vault.pk for vault in found])
    figures = reached.figures(found, embedding.active_index())
    return [glance(vault, counts.get(vault.pk, {}), figures[vault.pk]) for vault in found]


def counted(vaults: list[int]) -> dict[int, dict[str, int]]:
    """How many assets of each kind lie in these vaults."""
    rows = VaultAsset.objects.filter(vault__in=vaults, trashed_at__isnull=True)
    counts: dict[int, dict[str, int]] = {}
    for vault, kind, number in rows.values_list("vault", "kind").annotate(n=Count("pk")).order_by():
        counts.setdefault(vault, {})[kind] = number
    return counts
