"""The postings index: the contract, and how it stays in step with the database."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from engine import scope_sql
from engine.errors import InvalidQuery
from engine.keyword.fts5 import Fts5Index
from engine.keyword.part import Limits
from engine.keyword.postings import PostingsIndex
from engine.protocols import KeywordIndex
from engine.testing.contracts_keyword import ALICE, BOB, KeywordIndexContract, passage
from engine.testing.keyword_world import SCOPE, KeywordWorld, dice, random_passages, same
from engine.text.tokenize import analyzer
from engine.types import Match, Scope


@pytest.fixture
def world(tmp_path: Path) -> Iterator[KeywordWorld]:
    made = KeywordWorld(tmp_path / "index.db")
    yield made
    made.close()


def ids(index: KeywordIndex, query: str, scope: Scope = SCOPE) -> list[int]:
    return [hit.passage_id for hit in index.search(query, scope=scope, limit=20)]


def in_memory(index: PostingsIndex) -> int:
    return int(index.health().detail["passages_in_memory"] or 0)


class TestPostingsIndex(KeywordIndexContract):
    def make_index(self) -> KeywordIndex:
        database = sqlite3.connect(":memory:", isolation_level=None)
        database.execute(scope_sql.CREATE_CHANGES)
        index = Fts5Index(lambda: database, analyzer=analyzer("search"), owns_scope=True)
        index.ensure()
        return PostingsIndex(index)


def test_a_search_is_answered_from_memory(world: KeywordWorld) -> None:
    index = world.open()
    index.upsert([passage(1, "deploy on Friday"), passage(2, "coffee", owner=BOB)])
    assert ids(index, "friday") == [1]
    assert in_memory(index) == 1
    world.execute("DROP TABLE memory_fts")
    world.execute("CREATE VIRTUAL TABLE memory_fts USING fts5(title, body, meta, scope)")
    assert ids(index, "friday") == [1]
    assert world.fts5.count() == 0


def test_each_index_sees_what_another_wrote_at_its_next_search(world: KeywordWorld) -> None:
    first, second = world.open(), world.open()
    first.upsert([passage(1, "deploy on Friday")])
    assert ids(second, "friday") == [1]
    first.upsert([passage(1, "deploy on Monday"), passage(2, "friday")])
    assert ids(second, "friday") == [2]
    assert ids(second, "monday") == [1]
    second.delete([2])
    assert ids(first, "friday") == []


def test_a_change_of_scope_columns_is_followed(world: KeywordWorld) -> None:
    index = world.open()
    index.upsert([passage(1, "friday"), passage(2, "friday")])
    assert ids(index, "friday") == [1, 2]
    world.execute("UPDATE memory_passage SET is_archived = 1 WHERE id = 1")
    world.log(1)
    assert ids(index, "friday") == [2]


def test_a_passage_moves_from_owner_to_owner(world: KeywordWorld) -> None:
    index = world.open()
    of_bob = replace(SCOPE, owners=frozenset({BOB}))
    index.upsert([passage(1, "friday")])
    assert (ids(index, "friday"), ids(index, "friday", of_bob)) == ([1], [])
    index.upsert([passage(1, "friday", owner=BOB)])
    assert (ids(index, "friday"), ids(index, "friday", of_bob)) == ([], [1])


def test_a_transaction_sees_its_own_changes_and_a_rollback_leaves_none(
    world: KeywordWorld,
) -> None:
    index = world.open()
    index.upsert([passage(1, "friday")])
    assert ids(index, "friday") == [1]
    world.execute("BEGIN IMMEDIATE")
    index.upsert([passage(2, "friday")])
    assert ids(index, "friday") == [1, 2]
    with ThreadPoolExecutor(1) as other:
        assert other.submit(ids, index, "friday").result() == [1]
    world.execute("ROLLBACK")
    assert ids(index, "friday") == [1]
    # The log gives the same number again, now for another passage.
    index.upsert([passage(3, "friday")])
    assert ids(index, "friday") == [1, 3]


def test_a_transaction_that_changed_nothing_is_answered_from_memory(world: KeywordWorld) -> None:
    index = world.open()
    index.upsert([passage(1, "friday")])
    assert ids(index, "friday") == [1]
    world.execute("BEGIN")
    world.execute("SELECT 1")
    assert ids(index, "friday") == [1]
    world.execute("COMMIT")
    assert in_memory(index) == 1


def test_an_index_that_missed_entries_of_the_log_loads_itself_anew(world: KeywordWorld) -> None:
    index = world.open()
    index.upsert([passage(1, "friday")])
    assert ids(index, "friday") == [1]
    world.open().upsert([passage(2, "friday"), passage(3, "monday")])
    world.execute(f"DELETE FROM {scope_sql.CHANGES} WHERE id < 3")
    assert ids(index, "friday") == [1, 2]


def test_another_build_of_the_table_is_loaded_anew(world: KeywordWorld) -> None:
    index = world.open()
    index.upsert([passage(1, "friday")])
    assert ids(index, "friday") == [1]
    world.fts5.clear()
    assert ids(index, "friday") == []
    world.fts5.upsert([passage(2, "friday")])
    world.log(2)
    assert ids(index, "friday") == [2]


def test_many_small_changes_give_what_fts5_gives(world: KeywordWorld) -> None:
    chance = dice(5)
    index = world.open()
    known = list(range(1, 400))
    index.upsert(random_passages(chance, known))
    for _ in range(120):
        index.upsert(random_passages(chance, chance.sample(range(1, 600), chance.randint(1, 9))))
        index.delete(chance.sample(range(1, 600), chance.randint(0, 4)))
        query = "咖啡 deploy the タワー"
        found = index.search(query, scope=SCOPE, limit=30)
        assert same(found, world.fts5.search(query, scope=SCOPE, limit=30))
    assert in_memory(index) < 1200


def test_the_parts_used_last_stay_in_memory(world: KeywordWorld) -> None:
    index = world.open(limits=Limits(max_bytes=50_000))
    owners = range(1, 9)
    index.upsert([passage(owner, "friday", owner=owner) for owner in owners])
    for owner in owners:
        assert ids(index, "friday", replace(SCOPE, owners=frozenset({owner}))) == [owner]
    assert index.health().detail["parts"] == 2
    assert ids(index, "friday", replace(SCOPE, owners=frozenset({1}))) == [1]


def test_a_scope_of_very_many_owners_is_left_to_fts5(world: KeywordWorld) -> None:
    index = world.open()
    index.upsert([passage(owner, "friday", owner=owner) for owner in range(1, 11)])
    everyone = replace(SCOPE, owners=frozenset(range(1, 1001)))
    assert ids(index, "friday", everyone) == list(range(1, 11))
    assert in_memory(index) == 0


def test_eight_threads_search_while_one_writes(world: KeywordWorld) -> None:
    index = world.open()
    index.upsert(random_passages(dice(1), range(1, 300)))
    index.upsert([passage(1000, "unforgettable")])

    def search(_number: int) -> bool:
        return ids(index, "unforgettable") == [1000] and len(ids(index, "deploy the")) == 20

    with ThreadPoolExecutor(8) as threads:
        found = threads.map(search, range(200))
        for number in range(1, 40):
            index.upsert(random_passages(dice(number), [number, 300 + number]))
        assert all(found)


def test_what_is_no_query_is_refused_as_fts5_refuses_it(world: KeywordWorld) -> None:
    index = world.open()
    for query, code in (
        ("(((", "empty_query"),
        (" ".join(map(str, range(2000))), "too_many_terms"),
    ):
        with pytest.raises(InvalidQuery) as refusal:
            index.search(query, scope=SCOPE, limit=5)
        assert refusal.value.code == code


def test_match_modes_are_those_of_fts5(world: KeywordWorld) -> None:
    index = world.open()
    index.upsert([passage(1, "rate limits"), passage(2, "limits of the rate")])
    found = index.search("rate limits", scope=SCOPE, limit=5, match=Match.PHRASE)
    assert [hit.passage_id for hit in found] == [1]
    assert index.terms("rate limits") == world.fts5.terms("rate limits")


def test_weights_must_be_whole_numbers(world: KeywordWorld) -> None:
    index = Fts5Index(world.connect, analyzer=analyzer("search"), weights=(1.5, 1.0, 1.0))
    with pytest.raises(ValueError, match="whole"):
        PostingsIndex(index)


def test_it_tells_of_the_durable_index_and_of_its_memory(world: KeywordWorld) -> None:
    index = world.open()
    index.upsert([passage(1, "friday", owner=ALICE)])
    ids(index, "friday")
    health = index.health()
    assert (health.available, health.reason) == (True, "")
    assert (health.detail["passages"], health.detail["parts"]) == (1, 1)
    world.execute("DROP TABLE memory_fts")
    assert not index.health().available
