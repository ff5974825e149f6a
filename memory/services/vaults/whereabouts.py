"""Which vaults need the process that keeps keys."""

from __future__ import annotations

import uuid

from memory.models import Vault
from memory.services.drafts import is_storable


def may_be_sealed(reference: str) -> bool:
    """Whether any vault of this id or name is sealed, whoever asks.

    This says where a request is answered, and nothing about who may do what there.
    """
    sealed = Vault.objects.filter(is_sealed=True).order_by()
    try:
        return sealed.filter(uid=uuid.UUID(reference)).exists()
    except ValueError:
        return is_storable(reference) and sealed.filter(name=reference).exists()
