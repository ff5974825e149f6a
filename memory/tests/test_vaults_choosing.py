"""Choosing the services of vaults: who may, what is refused, and what stands before it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.providers.spec import ProviderSpec
from engine.testing.fake_provider import Provider
from engine.types import Mode
from memory import vault_wiring, wiring
from memory.errors import Conflict, Forbidden, Invalid
from memory.models import AuditEntry, Passage, Vault
from memory.principal import SYSTEM, Principal
from memory.services import embedding, providers
from memory.services.vaults import asking, choosing, lifecycle, searching
from memory.tests.conftest import Remember, Work
from memory.tests.vault_lab import EMBEDDING, filled, lab, near, refused, running
from memory.tests.vaults import (
    configure,
    fill,
    opened,
    query,
    sent,
    service,
)

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def server(settings: Any, tmp_path: Path) -> Iterator[Provider]:
    with running(settings, tmp_path) as one:
        yield one


@pytest.fixture
def vault(server: Provider, alice: Principal) -> Vault:
    return filled(alice)


def test_the_file_stands_before_the_studio_which_cannot_change_it(
    server: Provider,
    alice: Principal,
    manager: Principal,
    vault: Vault,
    settings: Any,
    tmp_path: Path,
) -> None:
    lab(server)
    choosing.update(manager, EMBEDDING)
    configure(settings, tmp_path, service("embedding", server.port, "whole/operation"))
    lifecycle.unlock(alice, "notes", passphrase="correct horse battery")
    near(alice, vault)
    assert {request.path for request in server.requests} == {"/whole/operation"}
    assert searching.status(alice, "notes").backend.origin == "config"
    for change in (EMBEDDING, {"embeddingDimensions": 8}):
        with pytest.raises(Conflict) as raised:
            choosing.update(manager, change)
        assert raised.value.code == "read_only"
    # What the file leaves out is still the studio's.
    choosing.update(manager, {"rerankProviderModel": "lab/ranker"})
    assert vault_wiring.services().rerank is not None


def test_a_device_only_vault_and_the_policy_hold_for_what_the_studio_chose(
    server: Provider, alice: Principal, manager: Principal, vault: Vault
) -> None:
    lab(server, kind="openai")
    choosing.update(manager, {**EMBEDDING, "generationProviderModel": "lab/writer"})
    lifecycle.update(alice, "notes", {"is_device_only": True})
    assert near(alice, vault).embedded == 3
    asked = len(server.requests)
    providers.update(manager, "lab", {"base_url": "https://api.example.com/v1"})
    told = AuditEntry.objects.filter(action="vault.services").latest("pk")
    assert told.target_ids == ["embeddingProviderModel", "generationProviderModel"]
    assert set(told.detail.values()) == {"api.example.com"}
    assert refused(lambda: near(alice, vault))[0] == "device_only_vault"
    assert refused(lambda: asking.answer(alice, query(vault)))[0] == "device_only_vault"
    lifecycle.update(alice, "notes", {"is_device_only": False})
    # A provider may be on the local network; a vault's text may not go there without TLS.
    providers.update(manager, "lab", {"base_url": "http://10.0.0.5/v1"})
    assert refused(lambda: near(alice, vault)) == ("url_policy", "https_required")
    assert len(server.requests) == asked
    with pytest.raises(Invalid) as raised:
        choosing.update(manager, {"embeddingProviderModel": "lab/other"})
    assert "https_required" in raised.value.fields["embeddingProviderModel"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("embeddingProviderModel", "nobody/model"),
        ("embeddingProviderModel", "model"),
        ("embeddingProviderModel", "writer/model"),
        ("generationProviderModel", "ranker/model"),
        ("rerankProviderModel", "google/model"),
        ("embeddingProviderModel", "off/model"),
        ("embeddingProviderModel", "keyless/model"),
    ],
)
def test_what_could_not_be_asked_is_refused_at_its_field(
    field: str, value: str, server: Provider, manager: Principal
) -> None:
    for name, kind, options in (
        ("writer", "anthropic", {"api_key": "k"}),
        ("ranker", "voyage", {"api_key": "k"}),
        ("google", "gemini", {"api_key": "k"}),
        ("off", "openai", {"api_key": "k", "enabled": False}),
        ("keyless", "openai", {"key_variable": "NOT_SET_ANYWHERE"}),
    ):
        providers.create(SYSTEM, ProviderSpec(name, kind, **options))
    with pytest.raises(Invalid) as raised:
        choosing.update(manager, {field: value})
    assert list(raised.value.fields) == [field]
    assert choosing.get(manager).kept.revision == 0


def test_a_provider_that_vaults_use_stays_and_one_that_is_off_is_told(
    server: Provider, alice: Principal, manager: Principal, vault: Vault
) -> None:
    lab(server)
    choosing.update(manager, EMBEDDING)
    for act in (
        lambda: providers.delete(manager, "lab"),
        lambda: providers.update(manager, "lab", {"name": "other"}),
    ):
        with pytest.raises(Conflict) as raised:
            act()
        assert raised.value.code == "in_use"
    providers.update(manager, "lab", {"enabled": False})
    assert refused(lambda: near(alice, vault)) == ("service_unusable", "provider_off")
    assert searching.status(alice, "notes").backend.problem == "provider_off"
    assert searching.find(alice, query(vault, mode=Mode.KEYWORD)).found


def test_a_vault_with_a_model_of_its_own_is_sent_nowhere(
    server: Provider, alice: Principal, manager: Principal, vault: Vault
) -> None:
    lab(server)
    choosing.update(manager, EMBEDDING)
    lifecycle.update(alice, "notes", {"embedding_model": "multilingual-e5-small"})
    assert near(alice, vault).embedded == 3
    assert server.requests == []
    assert searching.status(alice, "notes").backend.kind == "local"


def test_choosing_is_recorded_with_the_host_and_needs_the_scope(
    server: Provider, alice: Principal, manager: Principal
) -> None:
    lab(server)
    with pytest.raises(Forbidden):
        choosing.get(alice)
    with pytest.raises(Forbidden):
        choosing.update(alice, EMBEDDING)
    choosing.update(manager, EMBEDDING)
    entry = AuditEntry.objects.get(action="vault.services")
    assert (entry.actor, entry.target_ids) == ("key:manager", ["embeddingProviderModel"])
    assert entry.detail == {"embedding": f"127.0.0.1:{server.port}"}
    choosing.update(manager, EMBEDDING)
    assert AuditEntry.objects.filter(action="vault.services").count() == 1
    with pytest.raises(Conflict) as raised:
        choosing.update(manager, {"embeddingProviderModel": None}, revision=0)
    assert raised.value.code == "revision_conflict"


def held(vault: Vault) -> int:
    """How many chunks of a vault have a vector in the store of memories."""
    index = embedding.active_index()
    assert index is not None
    ids = list(Passage.objects.filter(vault_id=vault.pk).values_list("pk", flat=True))
    return len(wiring.store_for(index).hashes(ids))


def test_a_chosen_service_takes_open_vaults_out_of_the_space_of_memories_and_back(
    server: Provider, alice: Principal, manager: Principal, remember: Remember, work: Work
) -> None:
    remember(alice, "likes green tea")
    library = opened(alice)
    fill(alice, library)
    work()
    assert held(library) == 3
    lab(server)
    choosing.update(manager, EMBEDDING)
    assert held(library) == 0
    work()
    assert (held(library), server.requests) == (0, [])
    assert near(alice, library).found
    assert "Refunds are paid" in sent(server)
    # Another one of them changes nothing in the store of memories.
    choosing.update(manager, {"embeddingProviderModel": "lab/other"})
    assert held(library) == 0
    server.requests.clear()
    choosing.update(manager, {"embeddingProviderModel": None})
    work()
    assert held(library) == 3
    assert near(alice, library).found
    assert server.requests == []
