"""Which source embeds an open vault, and that nothing of a device-only one reaches another."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps

from engine.testing.fake_models import openai_embeddings
from engine.testing.fake_provider import Answer, Provider, Request, serving
from engine.testing.fake_qdrant import serving as qdrant_serving
from engine.types import Mode
from engine.vault.errors import VaultError
from memory import qdrant_store, wiring
from memory.models import Job, Passage, Vault, VectorIndex
from memory.principal import SYSTEM, Principal
from memory.services import embedding, reindex
from memory.services import settings as studio_settings
from memory.services.vaults import assets, lifecycle, searching
from memory.services.vaults.assets import AssetDraft
from memory.tests.asking import days_ago
from memory.tests.conftest import Remember, Work
from memory.tests.qdrant_server import payloads, switch_on
from memory.tests.vaults import configure, fill, meanwhile, opened, query, sent, service
from memory.tests.watched import outage, watch

pytestmark = pytest.mark.django_db(transaction=True)
MODEL = "text-embedding-3-small"


@pytest.fixture
def remote() -> Iterator[Provider]:
    """A service that embeds like a real one, of another address than the local model."""
    with serving() as running:
        running.respond = openai_embeddings
        yield running


def choose(remote: Provider) -> None:
    """Have the studio embed with the service."""
    studio_settings.update(
        SYSTEM,
        {
            "embeddingSource": "remote",
            "customBaseUrl": f"http://127.0.0.1:{remote.port}/v1",
            "customModelId": MODEL,
        },
    )


def embedded(vault: Vault) -> int:
    return searching.status(SYSTEM, str(vault.uid)).figures.embedded


def held(index: VectorIndex, vault: Vault) -> int:
    """How many chunks of a vault have a vector in an index."""
    ids = list(Passage.objects.filter(vault_id=vault.pk).values_list("pk", flat=True))
    return len(wiring.store_for(index).hashes(ids))


def live() -> VectorIndex:
    index = embedding.active_index()
    assert index is not None
    return index


def test_an_open_vault_is_embedded_with_the_memories(
    alice: Principal, remember: Remember, work: Work, settings: Any
) -> None:
    source = watch(settings)
    remember(alice, "likes green tea")
    vault = opened(alice)
    fill(alice, vault)
    work()
    assert len(source.documents) == 4
    assert held(live(), vault) == embedded(vault) == 3
    searching.find(alice, query(vault))
    assert len(source.documents) == 4


def test_the_studios_service_embeds_open_vaults_but_never_a_device_only_one(
    alice: Principal, remember: Remember, work: Work, remote: Provider
) -> None:
    choose(remote)
    shared, private = opened(alice, "shared"), opened(alice, "own", is_device_only=True)
    fill(alice, shared)
    assets.put(alice, "own", AssetDraft("SWORDFISH is the word.", "SWORDFISH"))
    remember(alice, "likes green tea")
    work()
    reindex.start(SYSTEM, force=True)
    work()
    embedding.reconcile()
    for mode in Mode.KEYWORD, Mode.VECTOR, Mode.HYBRID:
        found = searching.find(alice, query(private, "SWORDFISH", mode=mode)).found
        assert [item.chunk.passage.title for item in found] == ["SWORDFISH"]
    searching.prepare(alice, "own")
    assert "SWORDFISH" not in sent(remote)
    assert "Refunds are paid" in sent(remote)
    assert (live().source, held(live(), shared), held(live(), private)) == ("remote", 3, 0)
    assert embedding.coverage().percent == 100.0
    assert searching.status(alice, "shared").backend.host == f"127.0.0.1:{remote.port}"
    assert searching.status(alice, "own").backend.host == ""


def test_a_change_to_a_service_leaves_device_only_vaults_behind(
    alice: Principal, work: Work, remote: Provider
) -> None:
    shared, private = opened(alice, "shared"), opened(alice, "own", is_device_only=True)
    fill(alice, shared)
    assets.put(alice, "own", AssetDraft("SWORDFISH is the word.", "SWORDFISH"))
    work()
    assert (live().source, held(live(), shared), held(live(), private)) == ("local", 3, 1)
    choose(remote)
    work()
    assert (live().source, held(live(), shared), held(live(), private)) == ("remote", 3, 0)
    assert searching.find(alice, query(private, "word", mode=Mode.VECTOR)).found
    assert "SWORDFISH" not in sent(remote)


def test_a_vault_that_becomes_device_only_leaves_the_service_at_once(
    alice: Principal, work: Work, remote: Provider
) -> None:
    choose(remote)
    vault = opened(alice)
    fill(alice, vault)
    work()
    assert held(live(), vault) == 3
    lifecycle.update(alice, "library", {"is_device_only": True})
    assert held(live(), vault) == 0
    asked = len(remote.requests)
    assets.put(alice, "library", AssetDraft("SWORDFISH.", "SWORDFISH"))
    work()
    assert searching.find(alice, query(vault, "refund")).found
    assert len(remote.requests) == asked
    lifecycle.update(alice, "library", {"is_device_only": False})
    work()
    assert held(live(), vault) == 4


def test_what_becomes_device_only_while_it_is_embedded_keeps_no_vector(
    alice: Principal, work: Work, remote: Provider
) -> None:
    choose(remote)
    vault = opened(alice)
    fill(alice, vault)

    def lock_in() -> None:
        remote.respond = openai_embeddings
        lifecycle.update(alice, "library", {"is_device_only": True})

    def first_documents(request: Request) -> Answer:
        if "Refunds" not in str(request.json()):
            return openai_embeddings(request)
        return meanwhile(lock_in, openai_embeddings)(request)

    remote.respond = first_documents
    work()
    vault.refresh_from_db()
    assert vault.is_device_only
    assert held(live(), vault) == 0
    assert not live().marks.exists()


@pytest.mark.parametrize(
    "rules", [{"embedding_model": "use-multilingual"}, {"embedding_model": "embeddinggemma"}]
)
def test_a_vault_with_a_model_of_its_own_is_no_matter_of_the_studios(
    rules: dict[str, Any], alice: Principal, work: Work
) -> None:
    vault = opened(alice)
    fill(alice, vault)
    work()
    lifecycle.update(alice, "library", rules)
    work()
    assert (held(live(), vault), embedding.coverage().passages) == (0, 0)
    assert searching.find(alice, query(vault, "refund", mode=Mode.KEYWORD)).found
    if rules["embedding_model"] == "use-multilingual":
        view = searching.find(alice, query(vault, "refund"))
        assert (view.chunks, view.embedded) == (3, 3)
        assert searching.status(alice, "library").figures.signature.startswith("local:fake-light")
    else:
        with pytest.raises(VaultError) as refused:
            searching.find(alice, query(vault, "refund"))
        assert refused.value.code == "model_not_installed"
    lifecycle.update(alice, "library", {"embedding_model": ""})
    work()
    assert held(live(), vault) == 3


def test_a_service_of_vaults_embeds_them_and_no_background_job_does(
    alice: Principal, work: Work, remote: Provider, settings: Any, tmp_path: Path
) -> None:
    vault = opened(alice)
    fill(alice, vault)
    work()
    configure(settings, tmp_path, service("embedding", remote.port, "embed"))
    source = watch(settings)
    embedding.reconcile()
    assert held(live(), vault) == 0
    assets.put(alice, "library", AssetDraft("One more.", "More"))
    work()
    assert source.documents == []
    assert searching.find(alice, query(vault, "refund", mode=Mode.VECTOR)).embedded == 4
    assert "Refunds are paid" in sent(remote)
    configure(settings, tmp_path, "")
    embedding.reconcile()
    Job.objects.update(finished_at=days_ago(1))
    embedding.resume()
    work()
    assert held(live(), vault) == 4


def test_a_configuration_that_cannot_be_read_withholds_vaults(
    alice: Principal, remember: Remember, work: Work, settings: Any, tmp_path: Path
) -> None:
    configure(settings, tmp_path, "[rag]\nunknown = 1\n")
    source = watch(settings)
    fill(alice, opened(alice))
    remember(alice, "likes green tea")
    work()
    assert len(source.documents) == 1


def test_another_model_is_built_beside_and_searched_when_it_is_complete(
    alice: Principal, work: Work
) -> None:
    vault = opened(alice)
    fill(alice, vault)
    work()
    first = str(live().signature)
    studio_settings.update(SYSTEM, {"localModel": "use-multilingual"})
    assert searching.find(alice, query(vault, "refund")).found
    assert searching.status(alice, "library").figures.signature == first
    work()
    assert (str(live().signature) != first, held(live(), vault)) == (True, 3)
    assert searching.find(alice, query(vault, "refund policy")).found[0].vector is not None


def test_a_source_that_fails_fails_the_search_and_nothing_falls_back(
    alice: Principal, settings: Any
) -> None:
    vault = opened(alice)
    fill(alice, vault)
    source = watch(settings)
    source.before = outage
    for mode in (Mode.VECTOR, Mode.HYBRID):
        with pytest.raises(VaultError) as refused:
            searching.find(alice, query(vault, mode=mode))
        assert refused.value.code == "timeout"
    assert searching.find(alice, query(vault, mode=Mode.KEYWORD)).found
    source.before = lambda texts: None
    assert searching.find(alice, query(vault, mode=Mode.VECTOR)).embedded == 3


def test_a_studio_that_embeds_nothing_says_so(alice: Principal) -> None:
    studio_settings.update(SYSTEM, {"embeddingSource": "remote"})
    vault = opened(alice)
    fill(alice, vault)
    with pytest.raises(VaultError) as refused:
        searching.find(alice, query(vault))
    assert refused.value.code == "auth_failed"
    assert searching.find(alice, query(vault, mode=Mode.KEYWORD)).found


def test_a_chunk_that_cannot_be_embedded_is_told_and_the_others_are_found(
    alice: Principal, work: Work, settings: Any
) -> None:
    from engine.errors import EmbeddingFailed

    def fault(texts: Any) -> None:
        if any("Refunds" in text for text in texts):
            raise EmbeddingFailed("No.", code="invalid_response")

    source = watch(settings)
    source.before = fault
    vault = opened(alice)
    fill(alice, vault)
    view = searching.find(alice, query(vault, "parcels worldwide", mode=Mode.VECTOR))
    assert view.found[0].chunk.passage.title == "Shipping"
    assert (view.chunks, view.embedded) == (3, 2)
    assert "1 chunk could not be embedded" in view.warnings[0]


def test_qdrant_has_open_vaults_but_never_a_device_only_one(
    alice: Principal, remember: Remember, work: Work
) -> None:
    shared, private = opened(alice, "shared"), opened(alice, "own", is_device_only=True)
    fill(alice, shared)
    fill(alice, private)
    remember(alice, "likes green tea")
    work()
    with qdrant_serving() as server:
        switch_on(server)
        work()
        vaults = sorted(point["vault"] for point in payloads(server).values())
        assert vaults == [-1, shared.pk, shared.pk, shared.pk]
        store = qdrant_store.stores(live(), wiring.settings())[0]
        assert store.name == "qdrant"
        for vault in (shared, private):
            found = searching.find(alice, query(vault, "refund policy", mode=Mode.VECTOR)).found
            assert found[0].chunk.passage.title == "Refund policy"
            assert {item.chunk.passage.vault for item in found} == {vault.pk}
        lifecycle.update(alice, "shared", {"is_device_only": True})
        work()
        assert [point["vault"] for point in payloads(server).values()] == [-1]
        lifecycle.update(alice, "own", {"is_device_only": False})
        work()
        assert len(payloads(server)) == 4


def test_no_query_of_a_device_only_vault_is_kept_where_others_may_look(
    alice: Principal, work: Work
) -> None:
    shared, private = opened(alice, "shared"), opened(alice, "own", is_device_only=True)
    for vault in (shared, private):
        fill(alice, vault)
    work()
    source = wiring.source_for(live())
    assert source is not None
    searching.find(alice, query(private, "refund days"))
    assert source.stats.size == 0
    searching.find(alice, query(shared, "refund days"))
    assert source.stats.size == 1


@pytest.mark.parametrize("is_remote", [False, True])
def test_an_upgrade_sends_no_open_vault_to_a_service_that_was_not_sent_it_before(
    is_remote: bool, alice: Principal, work: Work, remote: Provider
) -> None:
    if is_remote:
        choose(remote)
    vault = opened(alice)
    fill(alice, vault)
    Passage.objects.all().delete()
    import_module("memory.migrations.0013_open_vaults_indexed").mark(apps, None)
    vault.refresh_from_db()
    own = "multilingual-e5-small" if is_remote else ""
    assert (vault.needs_index, vault.embedding_model) == (True, own)
    Job.objects.update(finished_at=days_ago(1))
    embedding.resume()
    work()
    vault.refresh_from_db()
    assert not vault.needs_index
    assert searching.find(alice, query(vault, "refund policy")).found
    assert "Refund" not in sent(remote)
    lifecycle.update(alice, "library", {"embedding_model": ""})
    work()
    assert ("Refund" in sent(remote), embedded(vault)) == (is_remote, 3)
