"""The tools of vaults: what a client may see of them, and what it may not choose."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from engine.vault.errors import VaultError
from memory.errors import NotFound
from memory.mcp import tools
from memory.mcp.errors import told
from memory.models import Vault, VaultGrant
from memory.principal import Principal
from memory.services.vaults import assets, grants, lifecycle
from memory.services.vaults.assets import AssetDraft
from memory.tests.test_mcp_tools import call
from memory.tests.vaults import REFUNDS, fill, meanwhile, sealed, writer, writes

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def vault(alice: Principal) -> Vault:
    made = sealed(alice)
    fill(alice, made)
    return made


def test_passages_are_retrieved_and_their_document_is_read(alice: Principal, vault: Vault) -> None:
    found = call(alice, "memory_retrieve", vault_id=str(vault.uid), query="refund days")
    first = found["results"][0]
    assert (first["label"], first["title"]) == ("S1", "Refund policy")
    assert REFUNDS.encode()[first["byteStart"] : first["byteEnd"]].decode() == first["text"]
    whole = call(alice, "memory_read", vaultId="notes", id=first["id"], revision=1)["memory"]
    assert (whole["content"], whole["type"], whole["revision"]) == (REFUNDS, "card", 1)
    for wrong in (first["chunkHash"], "S1"):
        with pytest.raises(NotFound):
            call(alice, "memory_read", vaultId="notes", id=wrong)


def test_a_basic_search_of_a_vault_is_by_words_and_names_each_document_once(
    alice: Principal, vault: Vault
) -> None:
    assets.put(alice, "notes", AssetDraft("refund sentence. " * 200, "Long"))
    found = call(alice, "memory_search", vaultId="notes", query="refund")
    keys = [memory["key"] for memory in found["memories"]]
    assert (len(keys), found["strategyUsed"]) == (len(set(keys)), "exact")
    assert set(keys) == {"Refund policy", "Long"}
    cards = call(alice, "memory_search", vaultId="notes", query="parcels", cardsOnly=True)
    assert [memory["type"] for memory in cards["memories"]] == ["card"]
    assert call(alice, "memory_search", vaultId="notes", query="。")["count"] == 0
    phrase = {"query": "days seven", "matchMode": "phrase"}
    assert call(alice, "memory_search", vaultId="notes", **phrase)["count"] == 0


def test_private_kinds_are_not_there(alice: Principal, vault: Vault) -> None:
    for kind in ("private", "credential", "file"):
        stored = assets.put(alice, "notes", AssetDraft("refund secret", "refund", kind))
        with pytest.raises(NotFound):
            call(alice, "memory_read", vaultId="notes", id=str(stored.asset.pk))
    found = call(alice, "memory_retrieve", vaultId="notes", query="refund secret", mode="bm25")
    assert {hit["kind"] for hit in found["results"]} <= {"card", "memory"}


def test_a_vault_without_a_grant_looks_like_none(
    alice: Principal, bob: Principal, vault: Vault
) -> None:
    asked = {"query": "refund", "mode": "bm25"}
    for name in ("notes", str(vault.uid), "nothing"):
        with pytest.raises(NotFound) as refused:
            call(bob, "memory_retrieve", vaultId=name, **asked)
        assert told(refused.value).code == "vault_not_found"
    grants.give(alice, "notes", "bob", "reader")
    assert call(bob, "memory_retrieve", vaultId="notes", **asked)["results"]


def test_nothing_but_the_question_can_be_chosen(alice: Principal) -> None:
    for name in ("memory_retrieve", "memory_ask", "memory_search", "memory_read"):
        tool = tools.offered(with_seed_names=False)[name]
        for odd in ("url", "model", "apiKey", "path", "proxy"):
            with pytest.raises(ValidationError):
                tools.read_arguments(tool, {"vaultId": "x", "query": "x", "id": "x", odd: "x"})


def test_a_question_is_answered_with_citations(
    alice: Principal, settings: Any, tmp_path: Path
) -> None:
    with writer(settings, tmp_path):
        fill(alice, sealed(alice))
        found = call(alice, "memory_ask", vaultId="notes", question="refund days?")
        assert (found["answer"], found["citations"]) == ("Within seven days [S1].", ["S1"])
        assert found["insufficientEvidence"] is False
        none = call(alice, "memory_ask", vaultId="notes", question="astronomy", mode="bm25")
        assert "answer" not in none
        assert none["insufficientEvidence"] is True


def test_a_grant_that_ends_meanwhile_looks_like_no_vault(
    alice: Principal, bob: Principal, settings: Any, tmp_path: Path
) -> None:
    with writer(settings, tmp_path) as provider:
        fill(alice, sealed(alice))
        grants.give(alice, "notes", "bob", "reader")
        provider.respond = meanwhile(VaultGrant.objects.all().delete, writes())
        with pytest.raises(NotFound) as refused:
            call(bob, "memory_ask", vaultId="notes", question="refund?", mode="bm25")
    assert refused.value.code == "vault_not_found"


def test_a_locked_vault_says_so(alice: Principal, vault: Vault) -> None:
    lifecycle.lock(alice, "notes")
    with pytest.raises(VaultError) as refused:
        call(alice, "memory_search", vaultId="notes", query="refund")
    assert told(refused.value).code == "vault_locked"
