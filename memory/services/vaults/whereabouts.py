"""Which vaults need the process that keeps keys."""

from __future__ import annotations

import uuid

from memory.models import Vault
from memory.services.drafts import is_storable


def is_sealed(reference: str) -> bool | None:
    """Whether the vault of this id is sealed, or any of this name, whoever asks; None without one.

    This says where a request is answered, and nothing about who may do what there.
    """
    rows = Vault.objects.order_by("-is_sealed").values_list("is_sealed", flat=True)
    try:
        return rows.filter(uid=uuid.UUID(reference)).first()
    except ValueError:
        return rows.filter(name=reference).first() if is_storable(reference) else None
