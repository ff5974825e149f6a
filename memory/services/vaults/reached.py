"""Where a vault is searched, in the tables or in memory, and what there is to tell of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from django.db.models import Sum
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from engine.vault import capacity
from engine.vault.keeper import Figures
from memory import provider_sources, vault_wiring, wiring
from memory.models import Vault, VaultAsset, VectorIndex
from memory.services.vaults import access, spaces, tables
from memory.vault_wiring import Backend

Place = Literal["memory", "database", "both"]
LIMITS: Final = {
    "chunks": capacity.MAX_CHUNKS,
    "textBytes": capacity.MAX_TEXT_BYTES,
    "vectorBytes": capacity.MAX_VECTOR_BYTES,
    "vaults": capacity.MAX_VAULTS,
}
"""Of what is searched in memory."""


def in_tables(vault: Vault, live: VectorIndex | None, *, uses_vectors: bool) -> bool:
    """Whether the tables answer; everything else is searched in the memory of this process.

    They answer for open vaults that are taken in: by words for all, by meaning for those that
    share the vector space of memories.
    """
    if vault.is_sealed or vault.needs_index:
        return False
    return not uses_vectors or spaces.shares(vault, live)


def place_of(vault: Vault, live: VectorIndex | None) -> Place:
    """Where the index of a vault is: ``both`` has words in the database, meaning in memory."""
    if not in_tables(vault, live, uses_vectors=False):
        return "memory"
    return "database" if spaces.shares(vault, live) else "both"


def limits(place: Place) -> dict[str, int] | None:
    """How much of a vault may be searched in memory; None where nothing is."""
    return None if place == "database" else LIMITS


def figures(vaults: Sequence[Vault], live: VectorIndex | None) -> dict[int, Figures]:
    """How much of each vault is indexed, and where, by primary key; a few queries for all."""
    with vault_wiring.one_look():
        return _figures(vaults, live)


def _figures(vaults: Sequence[Vault], live: VectorIndex | None) -> dict[int, Figures]:
    listed = [vault for vault in vaults if not vault.is_sealed and not vault.needs_index]
    counts = tables.counted(listed, live)
    texts = _text_bytes(listed)
    found: dict[int, Figures] = {}
    for vault in vaults:
        held = vault_wiring.keeper().figures(str(vault.uid), access.version_of(vault))
        found[vault.pk] = held
        if vault.pk not in counts:
            continue
        shares = spaces.shares(vault, live)
        found[vault.pk] = Figures(
            is_unlocked=True,
            is_indexed=True,
            chunks=counts[vault.pk].chunks,
            embedded=counts[vault.pk].embedded if shares else held.embedded,
            text_bytes=texts.get(vault.pk, 0),
            signature=(live.signature if live else "") if shares else held.signature,
        )
    return found


def _text_bytes(vaults: Sequence[Vault]) -> dict[int, int]:
    if not vaults:
        return {}
    rows = VaultAsset.objects.filter(
        vault__in=vaults, trashed_at__isnull=True, kind__in=VaultAsset.SEARCHABLE
    )
    return dict(rows.order_by().values_list("vault").annotate(n=Sum("size")))


def backend(live: VectorIndex | None) -> Backend:
    """What embeds for the vaults of the tables: the studio's own source."""
    chosen = wiring.settings()
    source = wiring.resolve_source(chosen).source
    model = live.model if live is not None else source.model if source is not None else ""
    if spaces.is_local(live):
        return Backend("local", model)
    named = provider_sources.named(chosen.embedding_provider_model)
    url = chosen.custom_base_url if chosen.has_endpoint else named.entry.spec.url if named else ""
    host = (url or "").partition("//")[2].partition("/")[0]
    provider = named.entry.name if named and not chosen.has_endpoint else ""
    return Backend("remote", model, host, "memories", provider)


def warnings(vault: Vault, failed: int, *, is_table: bool, uses_vectors: bool) -> list[str]:
    """What a reader of results is to know."""
    found: list[str] = []
    if vault.needs_index:
        found.append(
            _("This vault is being taken into the index; until then it is searched in memory.")
        )
    if not uses_vectors:
        return found
    if is_table and failed:
        message = ngettext(
            "%(count)s chunk could not be embedded and is found by words only.",
            "%(count)s chunks could not be embedded and are found by words only.",
            failed,
        )
        found.append(message % {"count": failed})
    if not is_table and vault_wiring.is_stopgap(vault):
        message = _("EmbeddingGemma is not installed; this vault embeds with %(model)s.")
        found.append(message % {"model": vault_wiring.backend(vault).model})
    return found
