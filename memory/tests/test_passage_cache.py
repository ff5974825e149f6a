"""What a process has read of passages is forgotten when they change, whoever changed them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import transaction
from django.test.utils import CaptureQueriesContext

from engine.types import Beside, MemoryType, Scope
from memory import wiring
from memory.models import Memory
from memory.passage_cache import MANY, PassageCache
from memory.passage_reader import PassageReader
from memory.principal import Principal
from memory.services import access, memories
from memory.tests.asking import days_ago
from memory.tests.conftest import Remember
from memory.tests.standing import passage_of, scope_of

pytestmark = pytest.mark.django_db(transaction=True)
MOMENT = datetime(2026, 5, 1, tzinfo=UTC)


@pytest.fixture
def cache() -> PassageCache:
    return PassageCache(wiring.connect)


@pytest.fixture
def said(alice: Principal, remember: Remember) -> list[Memory]:
    """Three turns of one session."""
    return [
        remember(alice, f"turn {n}", session_id="s", occurred_at=MOMENT + timedelta(hours=n))
        for n in range(3)
    ]


def read(cache: PassageCache | None, *rows: Memory) -> list[str]:
    reader = PassageReader(cache)
    reader.load([passage_of(memory) for memory in rows])
    return [memory.content for memory in reader.memories.values()]


def beside(cache: PassageCache | None, memory: Memory, scope: Scope) -> Beside:
    key = passage_of(memory)
    return PassageReader(cache).beside([key], scope)[key]


def test_what_was_read_is_not_read_again(
    cache: PassageCache, said: list[Memory], alice: Principal
) -> None:
    from django.db import connection

    ids, scope = [passage_of(memory) for memory in said], scope_of(alice)
    owner = access.read_owner(alice, None)
    assert owner is not None

    def everything() -> list[Any]:
        reader = PassageReader(cache, keys=[owner])
        return [reader.load(ids), reader.places(ids), reader.beside(ids, scope)]

    first = everything()
    with CaptureQueriesContext(connection) as queries:
        assert everything() == first
    # Whom the scope sees is always asked.
    assert len(queries) == 1


def test_a_change_is_seen(cache: PassageCache, said: list[Memory], alice: Principal) -> None:
    assert read(cache, said[0]) == ["turn 0"]
    memories.update(alice, str(said[0].pk), {"content": "another turn"})
    assert read(cache, said[0]) == ["another turn"]
    memories.update(alice, str(said[0].pk), {"metadata": {"tags": ["late"]}})
    reader = PassageReader(cache)
    reader.load([passage_of(said[0])])
    assert [memory.metadata for memory in reader.memories.values()] == [{"tags": ["late"]}]


def test_what_is_deleted_is_gone(cache: PassageCache, said: list[Memory], alice: Principal) -> None:
    key = passage_of(said[1])
    assert read(cache, *said) == ["turn 0", "turn 1", "turn 2"]
    memories.delete(alice, str(said[1].pk))
    reader = PassageReader(cache)
    assert (reader.load([key]), reader.places([key])) == ({}, {})


def test_who_changes_what_it_was_given_changes_nothing_for_others(
    cache: PassageCache, said: list[Memory]
) -> None:
    for _time in range(2):
        reader = PassageReader(cache)
        reader.load([passage_of(said[0])])
        (memory,) = reader.memories.values()
        assert "mine" not in memory.metadata
        memory.content, memory.metadata["mine"] = "mine", True
    assert read(cache, said[0]) == ["turn 0"]


def test_nothing_is_kept_of_a_transaction_that_is_rolled_back(
    cache: PassageCache, said: list[Memory], alice: Principal
) -> None:
    assert read(cache, said[0]) == ["turn 0"]
    with transaction.atomic():
        memories.update(alice, str(said[0].pk), {"content": "never"})
        assert read(cache, said[0]) == ["never"], "a transaction sees its own change"
        transaction.set_rollback(True)
    assert read(cache, said[0]) == ["turn 0"]


def test_what_was_read_before_another_heard_of_a_change_is_not_kept(
    cache: PassageCache, said: list[Memory], alice: Principal
) -> None:
    slow, key = PassageReader(cache), passage_of(said[0])
    slow.places([passage_of(said[1])])
    stale = PassageReader().load([key])
    memories.update(alice, str(said[0].pk), {"content": "another turn"})
    assert read(cache, said[1]) == ["turn 1"], "which forgets what has changed"
    version = slow._version
    assert version is not None and version != cache.follow()
    cache.keep_places(version, PassageReader().places([key]))
    assert cache.places([key]) == {}
    assert PassageReader(cache).load([key]) != stale


@pytest.mark.parametrize(
    ("change", "next_one"),
    [
        (lambda a, rows: memories.delete(a, str(rows[1].pk)), 2),
        (lambda a, rows: memories.update(a, str(rows[1].pk), {"session_id": "other"}), 2),
        (lambda a, rows: memories.update(a, str(rows[1].pk), {"expires_at": days_ago(1)}), 2),
        (lambda a, rows: memories.update(a, str(rows[1].pk), {"content": "the same"}), 1),
    ],
)
@pytest.mark.parametrize("is_other_kept", [True, False])
def test_neighbours_are_those_of_now(
    cache: PassageCache,
    said: list[Memory],
    alice: Principal,
    change: Callable[[Principal, list[Memory]], object],
    next_one: int,
    *,
    is_other_kept: bool,
) -> None:
    scope = scope_of(alice)
    assert beside(cache, said[0], scope) == (None, passage_of(said[1]))
    if not is_other_kept:
        cache._places.pop(passage_of(said[1]))
    expected = (None, passage_of(said[next_one]))
    change(alice, said)
    assert beside(cache, said[0], scope_of(alice)) == expected


def test_of_a_turn_that_is_gone_meanwhile_no_neighbour_is_told(
    cache: PassageCache, said: list[Memory], alice: Principal
) -> None:
    scope, (first, second, _third) = scope_of(alice), map(passage_of, said)
    assert beside(cache, said[0], scope) == (None, second)
    late = PassageReader(cache)
    assert late.places([first])
    for memory in said[:2]:
        memories.delete(alice, str(memory.pk))
    assert late.beside([first], scope) == {}


def test_a_turn_that_comes_in_between_is_the_neighbour(
    cache: PassageCache, said: list[Memory], alice: Principal, remember: Remember
) -> None:
    assert beside(cache, said[0], scope_of(alice)) == (None, passage_of(said[1]))
    between = MOMENT + timedelta(minutes=5)
    new = remember(alice, "between", session_id="s", occurred_at=between)
    assert beside(cache, said[0], scope_of(alice)) == (None, passage_of(new))
    assert beside(cache, said[1], scope_of(alice))[0] == passage_of(new)


def test_who_sees_less_has_other_neighbours(
    cache: PassageCache, said: list[Memory], alice: Principal
) -> None:
    memories.update(alice, str(said[1].pk), {"type": "episodic"})
    everything = scope_of(alice)
    facts = scope_of(alice, types=(MemoryType.FACTUAL,))
    assert beside(cache, said[0], everything) == (None, passage_of(said[1]))
    assert beside(cache, said[0], facts) == (None, passage_of(said[2]))
    assert beside(cache, said[0], everything) == (None, passage_of(said[1]))


def test_after_very_many_changes_all_is_read_again(
    cache: PassageCache, said: list[Memory], alice: Principal
) -> None:
    from memory.services import passages

    assert read(cache, said[0]) == ["turn 0"]
    key = passage_of(said[0])
    with transaction.atomic():
        passages.log(range(10**6, 10**6 + MANY + 1))
    cache.follow()
    assert cache.texts([key]) == {}
    assert read(cache, said[0]) == ["turn 0"]
