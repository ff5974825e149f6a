"""Providers in the service layer: who may change them, what is kept, which one wins."""

from __future__ import annotations

from typing import Any

import pytest

from engine.providers.spec import ProviderSpec
from memory import provider_table, secretbox
from memory.errors import Conflict, Forbidden, Invalid, NotFound
from memory.models import AuditEntry, Provider
from memory.principal import Principal
from memory.services import providers

pytestmark = pytest.mark.django_db
KEY = "sk-0123456789abcdef"
LAB = ProviderSpec("lab", base_url="http://127.0.0.1:8000/v1", api_key=KEY)


def names(entries: list[provider_table.Entry]) -> list[str]:
    return [entry.name for entry in entries]


def test_a_provider_is_kept_with_its_credential_sealed(manager: Principal) -> None:
    made = providers.create(manager, LAB)
    row = Provider.objects.get()
    assert KEY not in str(Provider.objects.values().get())
    assert secretbox.open_sealed(row.sealed_key) == KEY
    assert (made.key, made.masked_key, made.uid) == (KEY, "***cdef", str(row.uid))
    assert KEY not in repr(made)
    assert KEY not in str(list(AuditEntry.objects.values()))
    assert AuditEntry.objects.get(action="provider.create").target_ids == [str(row.uid)]


def test_an_ordinary_key_neither_reads_nor_changes_them(
    alice: Principal, manager: Principal
) -> None:
    providers.create(manager, LAB)
    for act in (
        lambda: providers.list_providers(alice),
        lambda: providers.get(alice, "lab"),
        lambda: providers.create(alice, ProviderSpec("x", "openai")),
        lambda: providers.update(alice, "lab", {"enabled": False}),
        lambda: providers.reorder(alice, ["lab"]),
        lambda: providers.delete(alice, "lab"),
    ):
        with pytest.raises(Forbidden):
            act()
    assert Provider.objects.get().is_enabled


def test_it_is_found_by_id_and_by_name_and_changed(manager: Principal) -> None:
    made = providers.create(manager, LAB)
    changed = providers.update(manager, made.id, {"models": ("qwen-*",), "enabled": False})
    assert (changed.spec.models, changed.spec.enabled, changed.revision) == (("qwen-*",), False, 2)
    assert changed.key == KEY
    assert providers.get(manager, "lab") == changed
    providers.delete(manager, "lab")
    assert providers.list_providers(manager) == []
    with pytest.raises(NotFound):
        providers.get(manager, "lab")


def test_one_credential_replaces_the_other(
    manager: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAB_KEY", " from-outside ")
    providers.create(manager, LAB)
    changed = providers.update(manager, "lab", {"key_variable": "LAB_KEY"})
    assert (changed.spec.api_key, changed.key) == ("", "from-outside")
    assert Provider.objects.get().sealed_key == ""
    monkeypatch.delenv("LAB_KEY")
    assert providers.get(manager, "lab").masked_key is None
    assert providers.update(manager, "lab", {"api_key": KEY}).spec.key_variable == ""
    assert providers.update(manager, "lab", {"api_key": ""}).key == ""


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"name": "No name"}, "name"),
        ({"kind": "acme"}, "kind"),
        ({"base_url": "http://169.254.169.254/"}, "baseUrl"),
        ({"base_url": ""}, "baseUrl"),
        ({"protocol": "soap"}, "protocol"),
        ({"api_key": "a\r\nb"}, "apiKey"),
        ({"key_variable": "MEMORY_STUDIO_ENCRYPTION_KEY"}, "apiKeyEnv"),
        ({"models": ("",)}, "models"),
    ],
)
def test_what_cannot_be_is_refused_at_its_field(
    manager: Principal, fields: dict[str, Any], field: str
) -> None:
    providers.create(manager, LAB)
    with pytest.raises(Invalid) as raised:
        providers.update(manager, "lab", fields)
    assert list(raised.value.fields) == [field]
    assert Provider.objects.get().revision == 1


def test_a_name_is_taken_once_and_a_stale_change_is_refused(manager: Principal) -> None:
    providers.create(manager, LAB)
    providers.create(manager, ProviderSpec("openai", "openai"))
    with pytest.raises(Conflict):
        providers.create(manager, LAB)
    with pytest.raises(Conflict):
        providers.update(manager, "openai", {"name": "lab"})
    with pytest.raises(Conflict) as raised:
        providers.update(manager, "lab", {"enabled": False}, revision=7)
    assert raised.value.code == "revision_conflict"


def test_they_are_put_in_order(manager: Principal) -> None:
    for name in ("a", "b", "c"):
        providers.create(manager, ProviderSpec(name, "openai"))
    assert names(providers.reorder(manager, ["c", "a"])) == ["c", "a", "b"]
    assert names(providers.reorder(manager, ["b"])) == ["b", "c", "a"]
    with pytest.raises(NotFound):
        providers.reorder(manager, ["nobody"])


def test_the_file_stands_before_the_studio_and_is_read_only(
    manager: Principal, settings: Any
) -> None:
    providers.create(manager, LAB)
    settings.MEMORY_STUDIO_PROVIDERS = [
        ProviderSpec("lab", base_url="https://file.example/v1"),
        ProviderSpec("cohere", "cohere"),
    ]
    assert names(providers.list_providers(manager)) == ["lab", "cohere"]
    entry = providers.get(manager, "lab")
    assert (entry.origin, entry.spec.url, entry.key) == ("config", "https://file.example/v1", "")
    with pytest.raises(Conflict):
        providers.update(manager, "cohere", {"enabled": False})
    with pytest.raises(Conflict):
        providers.delete(manager, "cohere")
    with pytest.raises(Conflict):
        providers.create(manager, ProviderSpec("cohere", "cohere"))


def test_a_variable_sets_one_field_of_whichever_provider_has_the_name(
    manager: Principal, settings: Any
) -> None:
    providers.create(manager, LAB)
    settings.MEMORY_STUDIO_PROVIDERS = [ProviderSpec("cohere", "cohere", key_variable="NOWHERE")]
    settings.MEMORY_STUDIO_PROVIDER_FIELDS = {
        "lab": {"api_key": "outer-key-of-the-lab"},
        "cohere": {"api_key": "co"},
        "openai": {"api_key": "oa"},
        "half": {"api_key": "x"},
    }
    found = {entry.name: entry for entry in providers.list_providers(manager)}
    assert list(found) == ["openai", "half", "cohere", "lab"]
    assert (found["lab"].origin, found["lab"].key) == ("studio", "outer-key-of-the-lab")
    assert found["lab"].fixed == {"api_key"}
    assert (found["cohere"].origin, found["cohere"].key) == ("config", "co")
    assert (found["openai"].origin, found["openai"].spec.kind) == ("environment", "openai")
    assert found["openai"].is_usable
    assert (found["half"].is_usable, dict(found["half"].problems)) == (
        False,
        {"base_url": "missing"},
    )
    assert secretbox.open_sealed(Provider.objects.get().sealed_key) == KEY
