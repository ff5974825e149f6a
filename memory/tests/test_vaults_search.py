"""Searching vaults: modes, scopes, the index that is kept, and what is never sent."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from engine.errors import InvalidQuery
from engine.testing.fake_provider import Answer, json_answer, serving
from engine.types import Match, Mode
from engine.vault.errors import VaultError
from engine.vault.index import VaultIndex, VectorCache
from engine.vault.keeper import Version
from memory import vault_wiring
from memory.models import Vault
from memory.principal import Principal
from memory.services.vaults import assets, grants, lifecycle, searching
from memory.services.vaults.assets import AssetDraft
from memory.tests.vaults import (
    PASSPHRASE,
    closing,
    configure,
    fill,
    meanwhile,
    opened,
    query,
    sealed,
    sent,
    service,
)

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def vault(alice: Principal) -> Vault:
    made = sealed(alice)
    fill(alice, made)
    return made


def titles(principal: Principal, vault: Vault, text: str, **options: Any) -> list[str]:
    view = searching.find(principal, query(vault, text, **options))
    return [item.chunk.passage.title for item in view.found]


@pytest.mark.parametrize("mode", [Mode.KEYWORD, Mode.VECTOR, Mode.HYBRID])
def test_every_mode_finds_what_the_vault_holds(mode: Mode, alice: Principal, vault: Vault) -> None:
    assert titles(alice, vault, "refund policy days", mode=mode)[0] == "Refund policy"
    assert titles(alice, vault, "退款", mode=mode)[0] == "Refund policy"
    narrowed = titles(alice, vault, "seven days", mode=mode, match=Match.PHRASE)
    assert narrowed == ["Refund policy"]
    cards = searching.find(alice, query(vault, "parcels", mode=mode, cards_only=True))
    assert {item.chunk.kind for item in cards.found} == {"card"}


def test_open_vaults_are_searched_alike(alice: Principal) -> None:
    made = opened(alice)
    fill(alice, made)
    assert titles(alice, made, "refund policy")[0] == "Refund policy"
    assert titles(alice, made, "七天", mode=Mode.KEYWORD) == ["Refund policy"]


def test_an_index_is_reused_until_something_changes(alice: Principal, vault: Vault) -> None:
    keeper = vault_wiring.keeper()
    name = str(vault.uid)
    for _ in range(3):
        searching.find(alice, query(vault))
    assert keeper.builds == (before := keeper.builds)
    built = keeper.builds
    assets.put(alice, name, AssetDraft("Another refund note.", "More"))
    assert "More" in titles(alice, vault, "refund note")
    lifecycle.update(alice, name, {"auto_lock_minutes": 5})
    searching.find(alice, query(vault))
    grants.give(alice, name, "Default", "reader")
    searching.find(alice, query(vault))
    assert keeper.builds == built + 3 > before


def test_a_third_vault_takes_the_place_of_the_first(alice: Principal, vault: Vault) -> None:
    others = [sealed(alice, name) for name in ("b", "c")]
    for made in (vault, *others):
        searching.find(alice, query(made))
    assert vault_wiring.keeper().cached == 2
    assert not searching.status(alice, str(vault.uid)).figures.is_indexed
    assert searching.status(alice, str(others[1].uid)).figures.is_indexed


def test_status_tells_figures_and_no_text(alice: Principal, vault: Vault) -> None:
    searching.prepare(alice, str(vault.uid))
    found = searching.status(alice, str(vault.uid))
    assert (found.figures.chunks, found.figures.embedded, found.is_unlocked) == (3, 3, True)
    assert found.assets == {"memory": 1, "card": 2, "private": 0, "credential": 0, "file": 0}
    assert (found.backend.kind, found.generation_host, found.role) == ("local", "", "manager")
    assert "multilingual-e5-small" in found.warnings[0]
    assert "Refund" not in str(found)


def test_what_a_budget_leaves_is_done_by_the_next_call(alice: Principal, vault: Vault) -> None:
    for number in range(20):
        assets.put(alice, "notes", AssetDraft(f"Number {number}.", f"n{number}"))
    first = searching.prepare(alice, "notes", budget_s=0)
    assert (first.chunks, first.made, first.is_complete) == (23, 0, False)
    second = searching.prepare(alice, "notes")
    assert (second.made, second.is_complete) == (23, True)


def test_a_search_by_words_asks_the_database_little(
    alice: Principal, vault: Vault, django_assert_max_num_queries: Any
) -> None:
    searching.find(alice, query(vault, mode=Mode.KEYWORD))
    with django_assert_max_num_queries(8):
        searching.find(alice, query(vault, mode=Mode.KEYWORD))


def test_a_stopgap_model_is_named_in_results_that_used_it(alice: Principal, vault: Vault) -> None:
    assert searching.find(alice, query(vault)).warnings
    assert searching.find(alice, query(vault, mode=Mode.KEYWORD)).warnings == []


def test_a_model_that_is_not_installed_leaves_keyword_search_working(
    alice: Principal, vault: Vault
) -> None:
    lifecycle.update(alice, "notes", {"embedding_model": "embeddinggemma"})
    with pytest.raises(VaultError) as refused:
        searching.find(alice, query(vault))
    assert refused.value.code == "model_not_installed"
    assert searching.find(alice, query(vault, mode=Mode.KEYWORD)).found


def test_a_length_of_vectors_is_that_of_the_model_that_was_chosen(
    alice: Principal, vault: Vault
) -> None:
    lifecycle.update(alice, "notes", {"embedding_dim": 256})
    assert searching.find(alice, query(vault, mode=Mode.VECTOR)).found


def test_a_lock_of_one_vault_does_not_fail_a_search_of_another(
    alice: Principal, vault: Vault
) -> None:
    other = sealed(alice, "more")
    fill(alice, other)
    building, go = threading.Event(), threading.Event()

    def slowly(vectors: VectorCache) -> VaultIndex:
        building.set()
        assert go.wait(20)
        return VaultIndex([], vectors)

    def build() -> str:
        try:
            vault_wiring.keeper().index(str(other.uid), Version(0, 0, 0), slowly)
        except VaultError as error:
            return error.code
        return ""

    with ThreadPoolExecutor(2) as threads:
        built = threads.submit(build)
        assert building.wait(20)
        found = threads.submit(closing(lambda: searching.find(alice, query(other))))
        lifecycle.lock(alice, "notes")
        go.set()
        assert built.result(20) == "cancelled"
        assert found.result(20).found


def test_limits_are_refused(alice: Principal, vault: Vault) -> None:
    for text, limit, code in (
        ("x" * 1025, 8, "query_too_long"),
        ("x", 101, "limit_out_of_range"),
        ("。", 8, "empty_query"),
    ):
        with pytest.raises(InvalidQuery) as refused:
            searching.find(alice, query(vault, text, limit=limit))
        assert refused.value.code == code


def embedder(port: int) -> str:
    return service("embedding", port, "embed")


def test_a_configured_service_embeds_and_only_what_may_be_sent(
    alice: Principal, settings: Any, tmp_path: Path
) -> None:
    with serving() as provider:
        configure(settings, tmp_path, embedder(provider.port))
        made = sealed(alice)
        fill(alice, made)
        for kind in ("private", "credential", "file"):
            assets.put(alice, "notes", AssetDraft(f"{kind} TOP-SECRET", "TOP-SECRET", kind))
        searching.find(alice, query(made, "refund", mode=Mode.VECTOR))
        searching.find(alice, query(made, "refund", mode=Mode.VECTOR))
        assert {request.path for request in provider.requests} == {"/embed"}
        texts = [text for request in provider.requests for text in request.json()["input"]]  # type: ignore[attr-defined]
    assert sum("Refunds are paid" in text for text in texts) == 1
    assert "TOP-SECRET" not in sent(provider)
    assert searching.status(alice, "notes").backend.host == f"127.0.0.1:{provider.port}"


REMOTE = """
[rag.embedding]
protocol = "compatible"
url = "https://api.example.com/embed"
model = "m"
[rag.rerank]
protocol = "compatible"
url = "https://api.example.com/rerank"
model = "m"
"""


def test_a_device_only_vault_sends_nothing_away(
    alice: Principal, settings: Any, tmp_path: Path
) -> None:
    configure(settings, tmp_path, REMOTE)
    made = sealed(alice, is_device_only=True)
    fill(alice, made)
    for options in ({}, {"rerank": False}, {"mode": Mode.KEYWORD}):
        with pytest.raises(VaultError) as refused:
            searching.find(alice, query(made, **options))
        assert refused.value.code == "device_only_vault"
    assert searching.find(alice, query(made, mode=Mode.KEYWORD, rerank=False)).found


def test_a_rerank_service_orders_and_its_failure_fails_the_search(
    alice: Principal, settings: Any, tmp_path: Path
) -> None:
    with serving() as provider:
        configure(settings, tmp_path, service("rerank", provider.port, "rerank"))
        made = sealed(alice)
        fill(alice, made)

        def worst_first(request: Any) -> Answer:
            count = request.json()["top_n"]
            results = [{"index": n, "relevance_score": n} for n in range(count)]
            return json_answer({"results": results})

        provider.respond = worst_first
        view = searching.find(alice, query(made, "parcels refund", mode=Mode.KEYWORD))
        assert view.reranked == "service"
        plain = searching.find(
            alice, query(made, "parcels refund", mode=Mode.KEYWORD, rerank=False)
        )
        assert plain.reranked == "none"
        assert [i.chunk for i in view.found] == [i.chunk for i in reversed(plain.found)]
        provider.respond = lambda request: json_answer({"results": []})
        with pytest.raises(VaultError, match="no-rerank") as refused:
            searching.find(alice, query(made, mode=Mode.KEYWORD))
    assert refused.value.code == "rerank_invalid_response"


def test_after_a_lock_no_further_attempt_is_made(
    alice: Principal, settings: Any, tmp_path: Path
) -> None:
    with serving() as provider:
        configure(settings, tmp_path, embedder(provider.port))
        made = sealed(alice)
        fill(alice, made)

        provider.respond = meanwhile(
            lambda: lifecycle.lock(alice, "notes"), lambda request: Answer(503)
        )
        with pytest.raises(VaultError) as refused:
            searching.find(alice, query(made))
        assert (refused.value.code, len(provider.requests)) == ("vault_locked", 1)
        lifecycle.unlock(alice, "notes", passphrase=PASSPHRASE)
        assert not searching.status(alice, "notes").figures.is_indexed


def test_a_change_while_it_embeds_gives_no_result(
    alice: Principal, settings: Any, tmp_path: Path
) -> None:
    from engine.testing.fake_provider import embeddings

    with serving() as provider:
        configure(settings, tmp_path, embedder(provider.port))
        made = sealed(alice)
        fill(alice, made)

        draft = AssetDraft("New text.", "New", source="new")
        provider.respond = meanwhile(lambda: assets.put(alice, "notes", draft), embeddings)
        with pytest.raises(VaultError) as refused:
            searching.find(alice, query(made))
    assert refused.value.code == "source_changed"
