"""The services of vaults as the studio keeps them, in the stored row of ``stored_settings``.

Reading them never fails either. ``memory.vault_services`` says which are in force.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from engine.vault.config import JSON_MODES, MAX_DIMENSIONS
from memory.stored_settings import Field, read

VAULT_FIELDS: Final = (
    Field("embedding", "embeddingProviderModel", "vaultEmbeddingProviderModel", "text", None),
    Field(
        "dimensions",
        "embeddingDimensions",
        "vaultEmbeddingDimensions",
        "integer",
        0,
        0,
        MAX_DIMENSIONS,
    ),
    Field("generation", "generationProviderModel", "vaultGenerationProviderModel", "text", None),
    Field(
        "json_mode",
        "generationJsonMode",
        "vaultGenerationJsonMode",
        "choice",
        "off",
        choices=JSON_MODES,
    ),
    Field("rerank", "rerankProviderModel", "vaultRerankProviderModel", "text", None),
)
REVISION: Final = Field(
    "revision", "revision", "vaultServicesRevision", "integer", 0, 0, 1_000_000_000
)


@dataclass(frozen=True, slots=True)
class VaultSettings:
    """``provider/model`` of each service; None leaves it to this machine, or switches it off.

    ``dimensions`` 0 are those that the model gives by itself. ``revision`` grows with every change
    of what is in force, so that work under another one is void.
    """

    embedding: str | None
    dimensions: int
    generation: str | None
    json_mode: str
    rerank: str | None
    revision: int

    def names(self, provider: str) -> bool:
        """Whether a provider is named by one of them."""
        chosen = (self.embedding, self.generation, self.rerank)
        return any(each is not None and each.startswith(f"{provider}/") for each in chosen)


def normalise(stored: Mapping[str, Any]) -> VaultSettings:
    """Settings from stored values; never raises."""
    return VaultSettings(**read((*VAULT_FIELDS, REVISION), stored))
