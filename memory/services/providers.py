"""Providers: listed, made, changed, put in order, removed.

Credentials go in and are never given out: readers see whether there is one, and a mask.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import Any, Final

from django.db import IntegrityError, transaction
from django.db.models import Max
from django.utils.translation import gettext as _

from engine.providers import spec as specs
from engine.providers.spec import ProviderSpec
from memory import provider_sources, provider_table, secretbox, vault_services, wiring
from memory.clock import now
from memory.errors import Conflict, Invalid, NotFound
from memory.models import Passage, Provider
from memory.principal import Principal
from memory.provider_table import Entry
from memory.services import access, audit, embedding
from memory.services.vaults import choosing
from memory.stored_settings import Settings

MOST: Final = 200
FIELDS: Final = frozenset(entry.name for entry in fields(ProviderSpec))
API_NAMES: Final = {"base_url": "baseUrl", "api_key": "apiKey", "key_variable": "apiKeyEnv"}


def list_providers(principal: Principal) -> list[Entry]:
    """Every provider in the order in which they are asked, credentials masked by the edges."""
    access.require(principal, "manage")
    return provider_table.table()


def get(principal: Principal, reference: str) -> Entry:
    """The provider with this id or name. Raises ``NotFound``."""
    for entry in list_providers(principal):
        if reference in (entry.uid, entry.name):
            return entry
    raise NotFound(_("No such provider."))


def create(principal: Principal, spec: ProviderSpec) -> Entry:
    """Add a provider, the last in order. Raises ``Invalid``, and ``Conflict`` for a known name."""
    access.require(principal, "manage")
    check(spec)
    if provider_table.find(spec.name) is not None:
        raise _taken()
    if Provider.objects.count() >= MOST:
        raise Conflict(_("There are too many providers."), code="too_many")
    last = Provider.objects.aggregate(last=Max("position"))["last"]
    row = Provider(position=0 if last is None else last + 1, created_at=now())
    _write(principal, row, spec, "provider.create")
    return get(principal, str(row.uid))


def update(
    principal: Principal,
    reference: str,
    changes: Mapping[str, Any],
    *,
    revision: int | None = None,
) -> Entry:
    """Change fields of ``ProviderSpec``. A key replaces the name of a variable and the other way.

    An empty ``api_key`` removes the stored one. Raises ``NotFound``, ``Invalid``, and ``Conflict``
    for a provider of the file or the environment, for a name that is taken, and where it has
    another ``revision`` by now.
    """
    access.require(principal, "manage")
    with transaction.atomic():
        row = _row(principal, reference)
        if revision is not None and revision != row.revision:
            message = _("Somebody else has changed this provider meanwhile.")
            raise Conflict(message, code="revision_conflict")
        before = provider_table.spec_of(row)
        after = replace(before, **_exclusive(changes))
        check(after)
        if after.name != before.name:
            _check_unused(before.name)
            if provider_table.find(after.name) is not None:
                raise _taken()
        row.revision += 1
        _write(principal, row, after, "provider.update", changed=changes)
    return get(principal, str(row.uid))


def delete(principal: Principal, reference: str) -> None:
    """Remove a provider with its credential. Raises ``NotFound`` and ``Conflict``."""
    access.require(principal, "manage")
    with transaction.atomic():
        row = _row(principal, reference)
        _check_unused(row.name)
        audit.record(principal, "provider.delete", ids=[row.uid], detail={"name": row.name})
        row.delete()


def reorder(principal: Principal, references: Iterable[str]) -> list[Entry]:
    """Put providers of the studio in this order; those that are not named follow as they were.

    Raises ``NotFound`` for one that is not there.
    """
    access.require(principal, "manage")
    with transaction.atomic():
        rows = list(Provider.objects.select_for_update().order_by("position", "pk"))
        known = {key: row for row in rows for key in (str(row.uid), row.name)}
        wanted: dict[int, Provider] = {}
        for reference in references:
            if reference not in known:
                raise NotFound(_("No such provider."))
            wanted[known[reference].pk] = known[reference]
        order = [*wanted.values(), *(row for row in rows if row.pk not in wanted)]
        for place, row in enumerate(order):
            row.position = place
        Provider.objects.bulk_update(order, ["position"])
        audit.record(principal, "provider.order", ids=[row.uid for row in order])
    return provider_table.table()


def check(spec: ProviderSpec) -> None:
    """Raise ``Invalid`` for a provider that cannot be, with what is wrong at each field."""
    found = specs.problems(spec)
    if found:
        told = {API_NAMES.get(name, name): explain_problem(code) for name, code in found.items()}
        raise Invalid(_("The provider cannot be set up like that."), fields=told)


def explain_problem(code: str) -> str:
    """What is wrong with a field of a provider."""
    texts = {
        "bad_name": _("Small letters, digits and single hyphens, at most 60."),
        "reserved_name": _(
            "This name is kept for the models and the address of the studio itself."
        ),
        "unknown_kind": _("There is no such kind of provider."),
        "unknown_protocol": _("There is no such protocol."),
        "missing": _("This kind of provider needs its address."),
        "two_keys": _("Either a key or the name of a variable, not both."),
        "bad_key": _("This cannot be sent as a key."),
        "bad_variable": _("This is no name of an environment variable."),
        "our_variable": _("This variable belongs to Memory Studio and is sent to nobody."),
        "bad_models": _("At most 200 names of at most 200 characters."),
    }
    return texts.get(code) or _("This address cannot be called (%(code)s).") % {"code": code}


def _row(principal: Principal, reference: str) -> Provider:
    """The row of the studio with this id or name, locked."""
    entry = get(principal, reference)
    if entry.uid is None:
        message = _("This provider is set up outside of the studio and is changed there.")
        raise Conflict(message, code="read_only")
    row = Provider.objects.select_for_update().filter(uid=entry.uid).first()
    if row is None:
        raise NotFound(_("No such provider."))
    return row


def _exclusive(changes: Mapping[str, Any]) -> dict[str, Any]:
    """The changes, where a new credential of one kind removes that of the other."""
    found = {name: value for name, value in changes.items() if name in FIELDS}
    if found.get("api_key"):
        found.setdefault("key_variable", "")
    if found.get("key_variable"):
        found.setdefault("api_key", "")
    return found


def _write(
    principal: Principal,
    row: Provider,
    spec: ProviderSpec,
    action: str,
    *,
    changed: Iterable[str] = (),
) -> None:
    row.name, row.kind, row.key_variable = spec.name, spec.kind, spec.key_variable
    row.base_url, row.protocol = spec.base_url.strip(), spec.protocol
    row.model_names, row.is_enabled = list(spec.models), spec.enabled
    if spec.api_key != secretbox.open_sealed(row.sealed_key):
        row.sealed_key = secretbox.seal(spec.api_key)
    row.updated_at = now()
    detail: dict[str, str | int | bool] = {"name": row.name}
    if changed:
        detail["fields"] = ", ".join(sorted(changed))
    try:
        with transaction.atomic():
            row.save()
            audit.record(principal, action, ids=[row.uid], detail=detail)
            _follow(principal, row.name)
    except IntegrityError:
        raise _taken() from None


def uses(name: str, chosen: Settings) -> frozenset[str]:
    """What the settings use a provider for: ``embedding``, ``rerank``."""
    named = {
        "embedding": provider_sources.embedding(chosen),
        "rerank": provider_sources.ranking(chosen),
    }
    return frozenset(use for use, parts in named.items() if parts and parts[0] == name)


def _check_unused(name: str) -> None:
    if uses(name, wiring.settings()) or vault_services.stored().names(name):
        message = _("The settings use this provider; choose another there first.")
        raise Conflict(message, code="in_use")


def _follow(principal: Principal, name: str) -> None:
    """Have the index made of what a provider in use is now; nothing is done for the same one.

    What works with it for a vault is void.
    """
    choosing.follow(principal, name)
    if "embedding" in uses(name, wiring.settings()) and Passage.objects.exists():
        embedding.embed_soon()


def _taken() -> Conflict:
    message = _("Another provider has this name.")
    return Conflict(message, fields={"name": message})
