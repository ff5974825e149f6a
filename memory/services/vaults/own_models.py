"""The local models that a vault may name for itself, and what embeds one that names none."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass

from memory import vault_wiring
from memory.models import Vault
from memory.principal import Principal
from memory.services import embedding, models
from memory.services.vaults import access, reached, spaces
from memory.vault_wiring import Backend


@dataclass(frozen=True, slots=True)
class OwnModel:
    """One embedding model of the catalogue. ``dimensions``: every length that it can give, longest
    first. ``command`` installs it, and is empty for one that comes with the packages."""

    id: str
    title: str
    dimensions: tuple[int, ...]
    is_installed: bool
    command: str
    megabytes: float
    licence: str


def offered(principal: Principal, reference: str) -> list[OwnModel]:
    """Every model that a vault may name, those that are installed first."""
    access.find(principal, reference, "manager")
    found = [
        OwnModel(
            model.id,
            model.title,
            model.dimensions,
            model.is_installed or (model.id == vault_wiring.GEMMA and vault_wiring.has_gemma()),
            model.command,
            model.megabytes,
            model.licence,
        )
        for model in models.local_models(principal)
        if model.use == "embedding"
    ]
    return sorted(found, key=lambda model: not model.is_installed)


def without_own(vault: Vault) -> Backend:
    """What embeds a vault that names no model."""
    plain = copy(vault)
    plain.embedding_model, plain.embedding_dim = "", None
    live = None if vault.is_sealed else embedding.active_index()
    if spaces.shares(plain, live):
        return reached.backend(live)
    return vault_wiring.backend(plain)
