"""Memories read by id come from a cache that is right whoever changed them."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memory.errors import NotFound
from memory.models import ApiKey, Memory, MemoryUse
from memory.principal import SYSTEM, Principal
from memory.services import listing, memories
from memory.services.row_cache import CACHE, RowCache
from memory.tests.asking import days_ago
from memory.tests.conftest import Remember


@dataclass(slots=True)
class Clock:
    """Seconds that pass when a test says so."""

    at: float = 0.0

    def __call__(self) -> float:
        """Now."""
        return self.at


def _figures(cache: RowCache, owner: int | None = None) -> tuple[int, int, int]:
    found = cache.figures(owner)
    return found.hits, found.misses, found.size


def test_store_cache_01_hits_misses_and_size_are_counted(
    alice: Principal, remember: Remember
) -> None:
    cache, memory = RowCache(), remember(alice, "likes tea")
    cache.read(memory.pk)
    cache.read(memory.pk, owner=alice.owner)
    assert cache.read(uuid.uuid4()) is None
    assert _figures(cache) == (1, 2, 1)
    assert _figures(cache, alice.owner) == (1, 0, 1)
    cache.clear()
    assert _figures(cache) == (0, 0, 0)


def test_store_cache_02_an_entry_lives_a_minute(alice: Principal, remember: Remember) -> None:
    clock = Clock()
    cache, memory = RowCache(clock=clock), remember(alice, "likes tea")
    for at in (0, 59.9, 60):
        clock.at = at
        assert cache.read(memory.pk) == memory
    assert _figures(cache) == (1, 2, 1)


def test_store_cache_03_what_was_read_longest_ago_goes_first(
    alice: Principal, remember: Remember
) -> None:
    cache = RowCache(most=2)
    a, b, c = (remember(alice, name).pk for name in "abc")
    for wanted in (a, b, a, c):
        cache.read(wanted)
    assert _figures(cache) == (1, 3, 2)
    for wanted in (a, c):
        cache.read(wanted)
    assert _figures(cache) == (3, 3, 2)
    cache.read(b)
    assert _figures(cache) == (3, 4, 2)


def test_above_500_a_fifth_goes(alice: Principal, remember: Remember) -> None:
    cache = RowCache(most=10)
    for place in range(11):
        cache.read(remember(alice, f"m{place}").pk)
    assert cache.figures().size == 9
    assert RowCache()._most == 500


@pytest.mark.parametrize(
    "changes",
    [
        {"content": "likes cocoa"},
        {"metadata": {"a": 2}},
        {"is_pinned": True},
        {"session_id": "s"},
        {"expires_at": days_ago(1)},
        {"archived_at": days_ago(1)},
        {"tokens": 99},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_what_another_process_changed_is_seen_at_once(
    alice: Principal, remember: Remember, changes: dict[str, Any]
) -> None:
    memory = remember(alice, "likes tea", metadata={"a": 1})
    memories.get(alice, memory.pk)
    # Past everything in this process, as another one would.
    Memory.objects.filter(pk=memory.pk).update(**changes)
    found = memories.get(alice, memory.pk)
    assert {name: getattr(found, name) for name in changes} == changes
    assert CACHE.figures().hits == 0
    assert memories.get(alice, memory.pk).content == found.content
    assert CACHE.figures().hits == 1


def test_a_key_that_was_renamed_is_seen_at_once(alice: Principal, remember: Remember) -> None:
    memory = remember(alice, "likes tea")
    memories.get(alice, memory.pk)
    ApiKey.objects.filter(name__startswith="alice").update(name="alice the second")
    assert memories.get(alice, memory.pk).api_key.name == "alice the second"
    ApiKey.objects.filter(name__startswith="alice").update(last_used_at=days_ago(0))
    memories.get(alice, memory.pk)
    assert CACHE.figures().hits == 1


def test_what_is_trashed_erased_or_anothers_is_never_served(
    alice: Principal, bob: Principal, manager: Principal, remember: Remember
) -> None:
    memory = remember(alice, "likes tea")
    memories.get(alice, memory.pk)
    with pytest.raises(NotFound):
        memories.get(bob, memory.pk)
    assert memories.get(manager, memory.pk) == memory
    Memory.objects.filter(pk=memory.pk).update(trashed_at=days_ago(0))
    with pytest.raises(NotFound):
        memories.get(alice, memory.pk)
    assert memories.get(alice, memory.pk, trashed=True) == memory
    Memory.objects.filter(pk=memory.pk).delete()
    with pytest.raises(NotFound):
        memories.get(alice, memory.pk, trashed=True)


def test_what_a_reader_does_to_its_object_stays_with_it(
    alice: Principal, remember: Remember
) -> None:
    pk = remember(alice, "likes tea", metadata={"tags": ["a"]}).pk
    first = memories.get(alice, pk)
    first.content = "spoiled"
    first.metadata["tags"].append("b")
    again = memories.get(alice, pk)
    assert (again.content, again.metadata) == ("likes tea", {"tags": ["a"]})


def test_a_hit_is_one_statement_for_the_row(alice: Principal, remember: Remember) -> None:
    pk = remember(alice, "likes tea").pk
    memories.get(alice, pk)
    with CaptureQueriesContext(connection) as queries:
        memories.get(alice, pk)
    assert len([query for query in queries if "memory_memory" in query["sql"]]) == 1


def test_the_figures_of_a_list_are_a_keys_own_and_everybodys_for_managers(
    alice: Principal, bob: Principal, manager: Principal, remember: Remember
) -> None:
    pk = remember(alice, "likes tea").pk
    for _ in range(3):
        memories.get(alice, pk)
    seen = [listing.stats(who) for who in (alice, bob)]
    assert [(stats.cache_hits, stats.cache_misses) for stats in seen] == [(2, 1), (0, 0)]
    everybody = listing.stats(SYSTEM)
    assert (everybody.cache_hits, everybody.cache_misses) == (2, 1)


def test_a_use_is_seen_at_once_and_asks_for_nothing_more(
    alice: Principal, remember: Remember
) -> None:
    memory = remember(alice, "likes tea")
    assert getattr(memories.get(alice, memory.pk), "use", None) is None
    MemoryUse.objects.create(memory=memory, access_count=2)
    assert memories.get(alice, memory.pk).use.access_count == 2
    with CaptureQueriesContext(connection) as queries:
        assert memories.get(alice, memory.pk).use.access_count == 2
    assert len([query for query in queries if "memory_memory" in query["sql"]]) == 1
