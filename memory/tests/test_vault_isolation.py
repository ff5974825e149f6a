"""What lies in a vault is found in that vault alone: by no other vault, and by no memory search."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from engine.types import Match, MemoryType, Mode
from memory.models import ApiKey, Memory, Passage, Vault
from memory.principal import SYSTEM, Principal
from memory.services import listing
from memory.services.retrieval import RetrieveRequest, retrieve
from memory.services.vaults import assets, grants, searching
from memory.services.vaults.assets import AssetDraft
from memory.services.why_not import why_not
from memory.tests.compat import client
from memory.tests.conftest import Remember, Work
from memory.tests.vaults import opened, query

pytestmark = pytest.mark.django_db(transaction=True)
TEXT = "The quagga drinks green tea 绿茶 every morning."
REACHES = ("session", "apiKey", "global")


def put(principal: Principal, name: str) -> Vault:
    """A vault whose texts hold every word that is asked for."""
    vault = opened(principal, name)
    for kind in ("card", "memory"):
        assets.put(principal, str(vault.uid), AssetDraft(f"{TEXT} {name}", name, kind))
    return vault


@pytest.fixture
def beside(alice: Principal, bob: Principal, remember: Remember, work: Work) -> Vault:
    """Alice's vault beside one more of hers, bob's, and memories of both."""
    put(bob, "of-bob")
    put(alice, "second")
    vault = put(alice, "first")
    remember(alice, "alice likes green tea", session_id="s1", is_shared=False)
    remember(bob, "bob likes green tea")
    work()
    return vault


@pytest.mark.parametrize("mode", [Mode.KEYWORD, Mode.VECTOR, Mode.HYBRID, Mode.RECENT])
@pytest.mark.parametrize("purpose", ["preview", "client", "evaluate"])
def test_no_memory_search_returns_a_row_of_a_vault(
    mode: Mode, purpose: Any, alice: Principal, manager: Principal, beside: Vault
) -> None:
    chunks = set(Passage.objects.filter(vault_id__isnull=False).values_list("pk", flat=True))
    assert len(chunks) == 6
    asked: list[tuple[Principal, dict[str, Any]]] = [
        *((alice, {"reach": reach}) for reach in REACHES),
        (alice, {"session": "s1"}),
        (alice, {"types": tuple(MemoryType)}),
        (manager, {"all_owners": True}),
        (manager, {"all_owners": True, "reach": "global"}),
        (SYSTEM, {"all_owners": True}),
    ]
    for principal, fields in asked:
        for match in (Match.ANY, Match.ALL):
            request = RetrieveRequest(
                "green tea 绿茶 quagga" if match is Match.ANY else "green tea",
                mode=mode,
                match=match,
                trace=True,
                **fields,
            )
            view = retrieve(principal, request, purpose=purpose)
            assert all("likes green tea" in row.content for row in view.memories.values())
            trace = view.retrieval.trace
            assert trace is not None
            seen = {entry.passage_id for stage in trace.stages for entry in stage.entries}
            assert not seen & chunks
            assert view.memories


def test_lists_and_explanations_know_nothing_of_vaults(alice: Principal, beside: Vault) -> None:
    assert listing.list_page(alice, listing.MemoryFilter(q="quagga")).total == 0
    (memory,) = Memory.objects.filter(api_key=alice.owner)
    told = why_not(alice, RetrieveRequest("green tea quagga", limit=1), str(memory.pk))
    assert (told.found, told.rank) == (True, 1)


def test_other_systems_protocols_know_nothing_of_vaults(beside: Vault) -> None:
    mem0 = client("alice")
    for path, body in (
        ("/v3/memories/search/", {"query": "quagga green tea", "filters": {"user_id": "*"}}),
        ("/store/items/search", {"namespace_prefix": [], "query": "quagga green tea"}),
    ):
        assert "quagga drinks" not in str(mem0.ask("POST", path, body))


@pytest.mark.parametrize("mode", [Mode.KEYWORD, Mode.VECTOR, Mode.HYBRID])
def test_a_vault_finds_its_own_alone(
    mode: Mode, alice: Principal, bob: Principal, manager: Principal, beside: Vault
) -> None:
    grants.give(alice, str(beside.uid), "bob", "reader")
    for principal in (alice, bob, manager, SYSTEM):
        view = searching.find(principal, query(beside, "green tea 绿茶 likes", mode=mode, limit=50))
        assert [item.chunk.passage.title for item in view.found] == ["first", "first"]
        assert {item.chunk.passage.vault for item in view.found} == {beside.pk}
    assert (view.chunks, view.embedded) == (2, 2)


def test_what_others_write_does_not_move_the_scores_of_a_vault(
    alice: Principal, bob: Principal, beside: Vault, remember: Remember
) -> None:
    asked = query(beside, "green tea", mode=Mode.KEYWORD, rerank=False)
    before = [item.score for item in searching.find(alice, asked).found]
    for number in range(5):
        remember(bob, f"green tea {number}")
        assets.put(alice, "second", AssetDraft(f"green tea {number}", source=str(number)))
    assert [item.score for item in searching.find(alice, asked).found] == before


@pytest.mark.parametrize("mode", [Mode.KEYWORD, Mode.HYBRID])
def test_a_memory_search_asks_no_more_because_of_vaults(
    mode: Mode, alice: Principal, remember: Remember, work: Work
) -> None:
    remember(alice, "alice likes green tea")
    work()

    def asked() -> int:
        retrieve(alice, RetrieveRequest("green tea", mode=mode))
        with CaptureQueriesContext(connection) as captured:
            retrieve(alice, RetrieveRequest("green tea", mode=mode))
        return len(captured)

    before = asked()
    put(alice, "first")
    work()
    assert asked() == before
    assert ApiKey.objects.filter(vaults__isnull=False).exists()
