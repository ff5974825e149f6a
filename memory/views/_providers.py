"""The rows of the card of providers, and the models that can be chosen from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy, pgettext_lazy

from engine.errors import EngineError
from memory import provider_sources, vault_services
from memory.principal import Principal
from memory.provider_table import Entry
from memory.services import embedding_models, providers
from memory.stored_settings import Settings
from memory.vault_settings import VaultSettings

USES = {
    "chat": pgettext_lazy("use of a provider", "chats"),
    "embedding": pgettext_lazy("use of a provider", "embeddings"),
    "rerank": pgettext_lazy("use of a provider", "ranking"),
    "vaults": pgettext_lazy("use of a provider", "vaults"),
}
ORIGINS: Mapping[str, str | Promise] = {
    "config": "config.toml",
    "environment": gettext_lazy("environment"),
}


@dataclass(frozen=True, slots=True)
class Use:
    """Something that a provider can do; ``is_chosen`` when the settings have it do so."""

    name: Promise
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class ProviderRow:
    """One provider as the card shows it."""

    entry: Entry
    title: str
    place: str
    uses: tuple[Use, ...]
    needs_key: bool
    reason: str
    is_first: bool
    is_last: bool

    @property
    def origin(self) -> str | Promise:
        """Where it is set up, when that is not here."""
        return ORIGINS.get(self.entry.origin, "")

    @property
    def state(self) -> str:
        """As cards show it: on, off or error."""
        if not self.entry.spec.enabled:
            return "off"
        is_keyless = self.needs_key and not self.entry.key
        return "error" if self.entry.problems or is_keyless else "on"


def provider_rows(principal: Principal, chosen: Settings) -> list[ProviderRow]:
    """Every provider in order; only those of the studio are moved."""
    entries, vaults = providers.list_providers(principal), vault_services.stored()
    moved = [entry.id for entry in entries if not entry.is_read_only]
    return [_row(entry, chosen, vaults, moved) for entry in entries]


def _row(entry: Entry, chosen: Settings, vaults: VaultSettings, moved: list[str]) -> ProviderRow:
    used = providers.uses(entry.name, chosen)
    can, title, place, needs_key = _of_kind(entry)
    if vaults.names(entry.name):
        used, can = used | {"vaults"}, can | {"vaults": True}
    problem = next(iter(entry.problems.values()), "")
    return ProviderRow(
        entry=entry,
        title=title,
        place=place,
        uses=tuple(Use(USES[name], name in used) for name, is_able in can.items() if is_able),
        needs_key=needs_key,
        reason=providers.explain_problem(problem) if problem else "",
        is_first=entry.id == moved[0] if moved else True,
        is_last=entry.id == moved[-1] if moved else True,
    )


def _of_kind(entry: Entry) -> tuple[dict[str, bool], str, str, bool]:
    try:
        service = entry.spec.service
        can = provider_sources.abilities(entry.spec)
        return can, service.title, entry.spec.url, service.needs_key
    except (EngineError, ValueError):
        # A kind or protocol of another version.
        return {}, entry.spec.kind, entry.spec.base_url, False


@dataclass(frozen=True, slots=True)
class Choices:
    """Names of models as settings take them."""

    embedding: tuple[str, ...]
    rerank: tuple[str, ...]


def model_choices(principal: Principal, rows: list[ProviderRow]) -> Choices:
    """Models of providers that could be asked now."""
    listed = embedding_models.embedding_providers(principal)
    embedding = tuple(
        model["id"]
        for row in listed
        for model in row["models"]
        if row["hasKey"] and row["provider"] not in ("local", "compatible")
    )
    rerank = tuple(
        f"{row.entry.name}/{model}"
        for row in rows
        if row.state == "on"
        for model in row.entry.spec.service.rerank_models
    )
    return Choices(embedding, rerank)
