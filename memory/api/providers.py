"""``/api/providers``: the services that may be called, listed, changed, put in order, tried."""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpRequest
from ninja import Router

from engine.providers import catalogue
from engine.providers.spec import ProviderSpec
from memory import vault_services
from memory.api.auth import caller
from memory.api.present_providers import check_out, provider_out, service_out
from memory.api.schemas.base import Success
from memory.api.schemas.providers import (
    CatalogueOut,
    ProviderChanges,
    ProviderIn,
    ProviderList,
    ProviderOrderIn,
    ProviderOut,
    ProviderTestIn,
    ProviderTestOut,
)
from memory.provider_table import Entry
from memory.services import access, provider_checks, providers, settings

router = Router(tags=["providers"], by_alias=True)

FIELD_OF: Final = {"api_key_env": "key_variable"}
"""Fields of a request that the services call otherwise."""


@router.get("", response=ProviderList)
def list_providers(request: HttpRequest) -> dict[str, Any]:
    """Every provider in the order in which they are asked."""
    return _listed(providers.list_providers(caller(request)))


@router.post("", response=ProviderOut)
def create_provider(request: HttpRequest, payload: ProviderIn) -> dict[str, Any]:
    """Add a provider, the last in order."""
    spec = ProviderSpec(**_fields(payload.model_dump()))
    return _out(providers.create(caller(request), spec))


@router.get("/catalogue", response=CatalogueOut)
def provider_catalogue(request: HttpRequest) -> dict[str, Any]:
    """The kinds of providers, with what is known of their models."""
    access.require(caller(request), "read")
    return {"data": [service_out(service) for service in catalogue.services()]}


@router.put("/order", response=ProviderList)
def order_providers(request: HttpRequest, payload: ProviderOrderIn) -> dict[str, Any]:
    """Put providers of the studio in order; those that are not named follow."""
    return _listed(providers.reorder(caller(request), payload.ids))


@router.get("/{provider_id}", response=ProviderOut)
def read_provider(request: HttpRequest, provider_id: str) -> dict[str, Any]:
    """One provider, by id or name."""
    return _out(providers.get(caller(request), provider_id))


@router.put("/{provider_id}", response=ProviderOut)
def update_provider(
    request: HttpRequest, provider_id: str, payload: ProviderChanges
) -> dict[str, Any]:
    """Change the fields that are sent."""
    changes = payload.model_dump(exclude_unset=True)
    revision = changes.pop("revision", None)
    sent = {name: value for name, value in changes.items() if value is not None}
    return _out(providers.update(caller(request), provider_id, _fields(sent), revision=revision))


@router.delete("/{provider_id}", response=Success)
def delete_provider(request: HttpRequest, provider_id: str) -> dict[str, Any]:
    """Remove a provider with its credential; not one that the settings use."""
    providers.delete(caller(request), provider_id)
    return {"success": True}


@router.post("/{provider_id}/test", response=ProviderTestOut)
def test_provider(
    request: HttpRequest, provider_id: str, payload: ProviderTestIn | None = None
) -> dict[str, Any]:
    """Ask it for its models, an embedding and a ranking, as far as it has them."""
    done = provider_checks.check(
        caller(request), provider_id, model=payload.model if payload else None
    )
    return {"ok": all(one.ok for one in done), "checks": [check_out(one) for one in done]}


def _fields(sent: dict[str, Any]) -> dict[str, Any]:
    found = {FIELD_OF.get(name, name): value for name, value in sent.items()}
    for name in ("base_url", "api_key", "key_variable"):
        if name in found:
            found[name] = found[name].strip()
    if "models" in found:
        found["models"] = tuple(dict.fromkeys(model.strip() for model in found["models"]))
    if "protocol" in found:
        found["protocol"] = str(found["protocol"])
    return found


def _listed(entries: list[Entry]) -> dict[str, Any]:
    chosen, vaults = settings.get(), vault_services.stored()
    return {"data": [provider_out(entry, chosen, vaults) for entry in entries]}


def _out(entry: Entry) -> dict[str, Any]:
    return provider_out(entry, settings.get(), vault_services.stored())
