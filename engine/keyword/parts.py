"""Whose passages are kept together: those of one owner, of one vault, shared ones, or all.

A search takes the parts that its scope names, and no statistics of any other owner. Shared
passages are in the part of their owner as well; when both are searched they count once.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.types import Scope

MAX_PARTS = 64


@dataclass(frozen=True, slots=True)
class PartKey:
    """One part: ``kind`` is ``owner``, ``vault``, ``shared`` or ``all``, ``number`` names which."""

    kind: str
    number: int = 0

    def __str__(self) -> str:
        return f"{self.kind}-{self.number}" if self.kind in ("owner", "vault") else self.kind

    def condition(self) -> tuple[str, tuple[int, ...]]:
        """SQL for the passages of the part (table ``p``), and its parameters."""
        condition = CONDITIONS[self.kind]
        return condition, (self.number,) * condition.count("?")


CONDITIONS = {
    "owner": "p.owner_id = ? AND p.vault_id IS NULL",
    "vault": "p.vault_id = ?",
    "shared": "p.is_shared AND p.vault_id IS NULL",
    "all": "p.vault_id IS NULL",
}


def parts_of(scope: Scope) -> list[PartKey]:
    """The parts that hold every passage of a scope; shared ones last."""
    keys = [PartKey("vault", vault) for vault in sorted(scope.vaults)]
    if scope.owners is None:
        return [*keys, PartKey("all")]
    keys.extend(PartKey("owner", owner) for owner in sorted(scope.owners))
    return [*keys, PartKey("shared")] if scope.include_shared else keys
