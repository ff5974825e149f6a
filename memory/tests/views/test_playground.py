"""The Playground shows what a retrieval brought, what it left out, and why."""

from __future__ import annotations

import pytest

from memory.models import ApiKey
from memory.principal import Principal
from memory.tests.conftest import Remember, Work
from memory.tests.views.conftest import Studio

RESULTS = "playground-results"


@pytest.fixture
def filled(alice: Principal, remember: Remember, work: Work) -> None:
    """Three memories of alice with their vectors."""
    remember(alice, "Alice likes green tea in the morning", key="tea", session_id="s-1")
    remember(alice, "Alice went to Kyoto in April", key="kyoto", type="episodic")
    remember(alice, "The release needs a tag and a changelog entry " * 5, key="release")
    work()


def test_before_the_first_query_it_says_what_it_is_for(studio: Studio) -> None:
    assert "Ask what an application would ask" in studio.text("/playground/")


def test_hits_carry_their_ranks_and_scores(studio: Studio, filled: None) -> None:
    body = " ".join(studio.text("/playground/?q=green+tea&mode=hybrid").split())
    assert "keyword <b>#1</b>" in body
    assert "vector <b>#1</b>" in body
    assert '<code class="term">green</code>' in body
    assert "fake-e5" in body


def test_what_the_budget_left_out_is_listed(studio: Studio, filled: None) -> None:
    body = studio.text("/playground/?q=alice+release&mode=keyword&budget=12", target=RESULTS)
    assert "Out of budget" in body
    assert "does not fit the budget" in body


def test_the_trace_says_where_a_candidate_was_dropped(studio: Studio, filled: None) -> None:
    body = studio.text("/playground/?q=alice&mode=keyword&limit=1", target=RESULTS)
    assert "beyond the limit" in body


def test_a_tier_that_is_off_says_why(studio: Studio, alice: Principal, remember: Remember) -> None:
    remember(alice, "likes tea")
    body = studio.text("/playground/?q=tea&mode=vector", target=RESULTS)
    assert "notice-warn" in body
    assert "keyword" in body


def test_another_keys_memories_are_not_simulated(
    studio: Studio, filled: None, bob: Principal
) -> None:
    uid = ApiKey.objects.get(name="bob").uid
    body = studio.text(f"/playground/?q=tea&mode=keyword&owner={uid}", target=RESULTS)
    assert "No memory answers this" in body


def test_recent_needs_no_query(studio: Studio, filled: None) -> None:
    assert 'class="hits"' in studio.text("/playground/?q=&mode=recent", target=RESULTS)


def test_a_session_narrows_it(studio: Studio, filled: None) -> None:
    body = studio.text("/playground/?q=alice&mode=keyword&session=s-1", target=RESULTS)
    assert "tea" in body
    assert "kyoto" not in body


@pytest.mark.parametrize(
    "query",
    [
        "q=tea&budget=20000",
        "q=tea&limit=0",
        "q=tea&mode=telepathy",
        "q=tea&match=maybe",
        "q=" + "x" * 1100,
        "q=" + "+".join(f"word{n}" for n in range(70)),
    ],
)
def test_what_cannot_be_asked_is_refused_with_a_reason(studio: Studio, query: str) -> None:
    response = studio.get(f"/playground/?{query}", target=RESULTS)
    assert response.status_code == 422
    assert 'role="alert"' in response.content.decode()


@pytest.mark.parametrize("query", ["q=%22%27%28%29*+OR+NEAR", "q=%25_", "q=。。。"])
def test_nothing_typed_is_an_operator_or_a_crash(studio: Studio, filled: None, query: str) -> None:
    assert studio.get(f"/playground/?{query}&mode=hybrid").status_code == 200


def test_a_preview_counts_no_use(studio: Studio, filled: None) -> None:
    from memory.models import MemoryUse

    studio.text("/playground/?q=tea")
    assert not MemoryUse.objects.filter(access_count__gt=0).exists()
