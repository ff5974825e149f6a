"""What threads do for the postings index while searches go on."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.errors import Unavailable
from engine.keyword.fts5 import Fts5Index
from engine.keyword.part import Limits
from engine.keyword.postings import PostingsIndex
from engine.testing.contracts_keyword import passage
from engine.testing.keyword_world import SCOPE, KeywordWorld, dice, random_passages, same
from engine.text.tokenize import analyzer

QUERY = "咖啡 deploy the タワー"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[KeywordWorld]:
    made = KeywordWorld(tmp_path / "index.db")
    yield made
    made.close()


def agrees(world: KeywordWorld, index: PostingsIndex) -> bool:
    """Whether it finds what FTS5 finds."""
    found = index.search(QUERY, scope=SCOPE, limit=40)
    return same(found, world.fts5.search(QUERY, scope=SCOPE, limit=40))


def detail(index: PostingsIndex, name: str) -> int:
    return int(index.health().detail[name] or 0)


def test_a_large_part_is_built_in_a_thread_while_fts5_answers(world: KeywordWorld) -> None:
    released: list[str] = []

    def release() -> None:
        released.append(threading.current_thread().name)

    index = world.open(limits=Limits(built_at_once=10), release=release)
    index.upsert(random_passages(dice(1), range(1, 31)))
    assert agrees(world, index)
    assert index.settle()
    assert agrees(world, index)
    assert (detail(index, "building"), detail(index, "passages_in_memory")) == (0, 30)
    assert released == ["keyword-parts"]


def test_many_entries_of_the_log_are_followed_in_a_thread(world: KeywordWorld) -> None:
    index = world.open(limits=Limits(followed_at_once=20))
    index.upsert(random_passages(dice(1), range(1, 31)))
    assert agrees(world, index)
    index.upsert(random_passages(dice(2), range(20, 80)))
    assert agrees(world, index)
    assert index.settle()
    assert agrees(world, index)
    assert detail(index, "building") == 0
    assert detail(index, "passages_in_memory") == 79


def test_segments_are_merged_in_a_thread_and_nothing_is_lost(world: KeywordWorld) -> None:
    limits = Limits(merged_at_once=100, built_at_once=10**6)
    index = world.open(limits=limits)
    index.upsert(random_passages(dice(1), range(1, 300)))
    assert agrees(world, index)
    chance = dice(3)
    for step in range(40):
        first = chance.randrange(1, 600)
        index.upsert(random_passages(chance, range(first, first + 30)))
        index.delete(chance.sample(range(1, 600), 5))
        assert agrees(world, index)
        if step % 7 == 0:
            assert index.settle()
            assert agrees(world, index)
    assert index.settle()
    assert agrees(world, index)
    assert detail(index, "passages_in_memory") < 2 * world.fts5.count()


def test_a_merged_part_is_put_away_again(world: KeywordWorld, tmp_path: Path) -> None:
    limits = Limits(merged_at_once=50, least_file=10)
    index = world.open(limits=limits, folder=tmp_path / "parts")
    index.upsert(random_passages(dice(1), range(1, 100)))
    assert agrees(world, index)
    path = tmp_path / "parts" / "owner-11.postings"
    before = path.stat().st_size
    for first in range(100, 400, 40):
        index.upsert(random_passages(dice(first), range(first, first + 40)))
        assert agrees(world, index)
        assert index.settle()
    assert path.stat().st_size > 2 * before
    assert agrees(world, world.open(limits=Limits(built_at_once=0), folder=tmp_path / "parts"))


def test_the_words_of_deleted_passages_leave_the_file(world: KeywordWorld, tmp_path: Path) -> None:
    limits = Limits(least_file=10, refiled_after_s=0)
    index = world.open(limits=limits, folder=tmp_path / "parts")
    index.upsert([*random_passages(dice(1), range(1, 50)), passage(99, "unforgettable")])
    assert agrees(world, index)
    path = tmp_path / "parts" / "owner-11.postings"
    assert b"unforgett" in path.read_bytes()
    index.delete([99])
    assert agrees(world, index)
    assert index.settle()
    assert b"unforgett" not in path.read_bytes()


def test_a_part_that_cannot_be_built_is_left_to_fts5(
    world: KeywordWorld, caplog: pytest.LogCaptureFixture
) -> None:
    def connect() -> sqlite3.Connection:
        if threading.current_thread().name == "keyword-parts":
            raise sqlite3.OperationalError("secret words")
        return world.connect()

    index = PostingsIndex(
        Fts5Index(connect, analyzer=analyzer("search"), owns_scope=True),
        limits=Limits(built_at_once=1),
    )
    index.upsert(random_passages(dice(1), range(1, 31)))
    assert agrees(world, index)
    assert index.settle()
    assert agrees(world, index)
    assert detail(index, "passages_in_memory") == 0
    assert caplog.messages == ["The keyword index of owner-11 was not built: OperationalError"]


def test_a_database_that_cannot_be_read_is_unavailable(world: KeywordWorld) -> None:
    index = world.open()
    index.upsert([passage(1, "friday")])
    world.execute("DROP TABLE memory_fts")
    world.execute("DROP TABLE memory_passagechange")
    with pytest.raises(Unavailable):
        index.search("friday", scope=SCOPE, limit=5)
