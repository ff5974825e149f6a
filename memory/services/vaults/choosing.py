"""Which services vaults use: read, chosen in the studio, and made to hold everywhere at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.db import transaction
from django.utils.translation import gettext as _

from engine.net.errors import UrlBlocked
from engine.net.policy import check_url
from memory import vault_services, vault_settings, vault_texts, vault_wiring
from memory.clock import now
from memory.errors import Conflict, Invalid
from memory.models import EngineSettings
from memory.principal import Principal
from memory.services import access, audit
from memory.services.vaults import respacing
from memory.vault_services import NAMES, Chosen, ServiceName, Services
from memory.vault_settings import REVISION, VAULT_FIELDS, VaultSettings

FIELDS: Final[Mapping[ServiceName, tuple[str, ...]]] = {
    "embedding": ("embeddingProviderModel", "embeddingDimensions"),
    "generation": ("generationProviderModel", "generationJsonMode"),
    "rerank": ("rerankProviderModel",),
}
"""API names of what is chosen for each service; the first is the service itself."""
WITHOUT_JSON: Final = frozenset({"anthropic"})
_BY_API: Final = {entry.api: entry for entry in VAULT_FIELDS}


@dataclass(frozen=True, slots=True)
class Choice:
    """The services in force, and what the studio keeps, whether it is in force or not."""

    services: Services
    kept: VaultSettings


def is_fixed(name: ServiceName) -> bool:
    """Whether a ``[rag]`` table decides a service."""
    return getattr(vault_wiring.config(), name) is not None


def get(principal: Principal) -> Choice:
    """What is chosen; never a key."""
    access.require(principal, "manage")
    kept = vault_services.stored()
    return Choice(vault_services.resolve(vault_wiring.config(), kept), kept)


def update(
    principal: Principal, changes: Mapping[str, Any], *, revision: int | None = None
) -> Choice:
    """Choose services by API name; None leaves one out. That is the consent to send there.

    Work under way with others is void in every process. Raises ``Invalid`` for one that could not
    be asked, and ``Conflict`` for one that the file decides or when there is another ``revision``.
    """
    access.require(principal, "manage")
    _check_open(changes)
    with transaction.atomic():
        row, _created = EngineSettings.objects.select_for_update().get_or_create(pk=1)
        before = vault_settings.normalise(row.stored)
        if revision is not None and revision != before.revision:
            message = _("Somebody else has changed these settings meanwhile.")
            raise Conflict(message, code="revision_conflict")
        for name, value in changes.items():
            row.stored[_BY_API[name].key] = value
        after = vault_settings.normalise(row.stored)
        if after != before:
            found = vault_services.resolve(vault_wiring.config(), after)
            _check(found, after, _changed(changes))
            _save(row, before.revision + 1)
            if (before.embedding is None) != (after.embedding is None):
                respacing.follow_all()
            detail = _hosts(found)
            audit.record(principal, "vault.services", ids=sorted(changes), detail=detail)
    return get(principal)


def follow(principal: Principal, provider: str) -> None:
    """Void what works with a provider that has changed, when vaults use it. In a transaction.

    The audit is told where texts go from now on.
    """
    kept = vault_services.stored()
    if not kept.names(provider):
        return
    row = EngineSettings.objects.select_for_update().get(pk=1)
    _save(row, vault_settings.normalise(row.stored).revision + 1)
    found = vault_services.resolve(vault_wiring.config(), kept)
    ids = [FIELDS[name][0] for name in NAMES if _is_of(found, name, provider)]
    audit.record(principal, "vault.services", ids=ids, detail=_hosts(found))


def _is_of(found: Services, name: ServiceName, provider: str) -> bool:
    chosen = found.named(name)
    return chosen is not None and chosen.provider == provider


def _save(row: EngineSettings, revision: int) -> None:
    row.stored[REVISION.key] = revision
    row.revision += 1
    row.updated_at = now()
    row.save()


def _changed(changes: Iterable[str]) -> list[ServiceName]:
    return [name for name in NAMES if set(FIELDS[name]) & set(changes)]


def _hosts(found: Services) -> dict[str, str | int | bool]:
    """Where the studio sends what, for the audit: that is what was agreed to."""
    chosen = {name: found.named(name) for name in NAMES}
    return {
        name: one.host for name, one in chosen.items() if one is not None and one.origin == "studio"
    }


def _check_open(changes: Iterable[str]) -> None:
    fixed = [name for name in _changed(changes) if is_fixed(name)]
    if fixed:
        message = _("The file config.toml decides this.")
        fields = {FIELDS[name][0]: message for name in fixed}
        raise Conflict(message, code="read_only", fields=fields)


def _check(found: Services, after: VaultSettings, names: Iterable[ServiceName]) -> None:
    problems: dict[str, str] = {}
    for name in names:
        chosen = found.named(name)
        if chosen is None:
            continue
        if message := _problem(chosen):
            problems[FIELDS[name][0]] = message
        elif chosen.protocol in WITHOUT_JSON and after.json_mode != "off":
            problems[FIELDS[name][1]] = _("This service cannot be asked for JSON; choose off.")
    if problems:
        raise Invalid(_("These services cannot be chosen like that."), fields=problems)


def _problem(chosen: Chosen) -> str:
    if chosen.problem:
        return vault_texts.problem(chosen.problem)
    try:
        check_url(chosen.url, vault_wiring.config().http.policy)
    except UrlBlocked as error:
        return _("Vaults may not call this address (%(code)s).") % {"code": error.reason}
    return ""
