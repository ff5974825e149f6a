"""Lists with their states, orders and figures, in a constant number of queries."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from engine.errors import EmbeddingFailed
from memory.errors import Forbidden, Invalid
from memory.principal import Principal
from memory.services import compaction, listing
from memory.services.listing import MemoryFilter
from memory.tests.asking import days_ago
from memory.tests.conftest import Remember, Work
from memory.tests.watched import watch


def _contents(principal: Principal, **wanted: Any) -> list[str]:
    page = listing.list_page(principal, MemoryFilter(**wanted))
    return [row.memory.content for row in page.rows]


@pytest.mark.parametrize(
    ("order", "found"),
    [
        ("-created_at", ["b", "ccc", "aa"]),
        ("created_at", ["aa", "ccc", "b"]),
        ("key", ["ccc", "aa", "b"]),
        ("-key", ["b", "aa", "ccc"]),
        ("-updated_at", ["b", "aa", "ccc"]),
    ],
)
def test_a_list_is_in_the_order_that_was_asked_for(
    alice: Principal, remember: Remember, order: str, found: list[str]
) -> None:
    remember(alice, "ccc", key="1", created_at=days_ago(2))
    remember(alice, "aa", key="2", created_at=days_ago(3))
    remember(alice, "b", key="3", created_at=days_ago(1))
    assert _contents(alice, order=order) == found


def test_rows_of_one_moment_still_have_one_order(alice: Principal, remember: Remember) -> None:
    moment = days_ago(1)
    for place in range(9):
        remember(alice, f"m{place}", created_at=moment)
    pages = [name for page in (1, 2, 3) for name in _contents(alice, limit=3, page=page)]
    assert len(set(pages)) == 9


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": 201}, "limit"),
        ({"page": 0}, "page"),
        ({"offset": -1}, "offset"),
        ({"q": "_" * 30_000}, "q"),
        ({"state": "lost"}, "state"),
        ({"order": "content"}, "order"),
        ({"order": "--key"}, "order"),
        ({"order": "api_key__secret_hash"}, "order"),
    ],
)
def test_a_list_out_of_bounds_names_the_field(
    alice: Principal, wanted: dict[str, Any], field: str
) -> None:
    with pytest.raises(Invalid) as refused:
        listing.list_page(alice, MemoryFilter(**wanted))
    assert list(refused.value.fields) == [field]


def test_each_state_lists_its_own_rows(alice: Principal, remember: Remember) -> None:
    remember(alice, "old", created_at=days_ago(60))
    compaction.run_now(alice, compaction.CompactRequest())
    remember(alice, "expired", expires_at=days_ago(1))
    assert _contents(alice, state="archived") == ["old"]
    assert _contents(alice, state="hidden") == ["expired"]
    assert len(_contents(alice)) == 2
    assert len(_contents(alice, state="all")) == 3


def test_a_row_tells_whether_it_has_its_vector(
    alice: Principal, remember: Remember, work: Work, settings: Any
) -> None:
    def refuse_poison(texts: Any) -> None:
        if any("poison" in text for text in texts):
            raise EmbeddingFailed(code="invalid_response")

    def states() -> dict[str, str]:
        page = listing.list_page(alice, MemoryFilter())
        return {row.memory.content: row.index_state for row in page.rows}

    watch(settings, refuse_poison)
    remember(alice, "tea")
    assert states() == {"tea": "off"}
    work()
    remember(alice, "poison")
    assert states() == {"tea": "indexed", "poison": "pending"}
    assert listing.stats(alice).pending_index == 1
    work()
    assert states() == {"tea": "indexed", "poison": "failed"}


def test_a_page_takes_the_same_number_of_queries_whatever_its_size(
    alice: Principal, remember: Remember, work: Work
) -> None:
    counts = []
    for wanted in (2, 40):
        for place in range(wanted):
            remember(alice, f"note {wanted} {place}")
        work()
        listing.stats(alice)
        listing.list_page(alice, MemoryFilter(limit=1))  # who holds the truth is known for a moment
        with CaptureQueriesContext(connection) as queries:
            listing.list_page(alice, MemoryFilter(limit=200))
            listing.stats(alice)
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 20


def test_sessions_are_listed_once_in_order(alice: Principal, remember: Remember) -> None:
    for place, session in enumerate(("b", "a", "b", "")):
        remember(alice, f"m{place}", session_id=session)
    assert listing.sessions(alice) == ["a", "b"]


def test_figures_count_live_rows_only(alice: Principal, remember: Remember) -> None:
    remember(alice, "aaaa", type="semantic", created_at=days_ago(60))
    compaction.run_now(alice, compaction.CompactRequest())
    remember(alice, "bbbbbbbb", type="episodic")
    figures = listing.stats(alice)
    assert (figures.total, figures.by_type) == (2, {"semantic": 1, "episodic": 1})


def test_listing_needs_the_scope(alice: Principal) -> None:
    writer = Principal("key", "alice", frozenset({"write"}), owner=alice.owner)
    for call in (
        lambda: listing.list_page(writer, MemoryFilter()),
        lambda: listing.stats(writer),
        lambda: listing.sessions(writer),
    ):
        with pytest.raises(Forbidden):
            call()
