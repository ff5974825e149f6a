"""Scores from memory are those of FTS5, whatever the scope; and those of the formula."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.keyword.bm25 import Formula
from engine.keyword.postings import PostingsIndex
from engine.testing.contracts_keyword import ALICE, BOB, NOW_MS, passage
from engine.testing.keyword_world import (
    SCOPE,
    KeywordWorld,
    dice,
    random_passages,
    random_text,
    same,
)
from engine.types import Match, MemoryType, Passage, Scope

CAROL = 13
SCOPES: tuple[dict[str, Any], ...] = (
    {"owners": frozenset({ALICE, BOB, CAROL})},
    {"owners": None},
    {"owners": frozenset({ALICE, BOB, CAROL}), "include_shared": True},
    {"owners": None, "vaults": frozenset({7, 8})},
    {"owners": None, "session": "s1"},
    {"owners": None, "types": frozenset({MemoryType.EPISODIC, MemoryType.SEMANTIC})},
    {"owners": None, "excluded": frozenset(range(0, 300, 3))},
    {"owners": None, "only": frozenset(range(0, 300, 3))},
    {"owners": None, "now_ms": NOW_MS + 50},
    {"owners": None, "retained_after_ms": {MemoryType.FACTUAL: NOW_MS - 20}},
)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[KeywordWorld]:
    made = KeywordWorld(tmp_path / "index.db")
    yield made
    made.close()


def queries(seed: int, count: int) -> list[str]:
    chance = dice(seed)
    made = [random_text(chance, 10) for _ in range(count)]
    return [query for query in made if query.strip()]


@pytest.mark.parametrize("size", [1, 7, 60, 900])
@pytest.mark.parametrize("limit", [1, 20, 2000])
def test_scores_of_one_owner_are_those_of_fts5(world: KeywordWorld, size: int, limit: int) -> None:
    index = world.open()
    index.upsert(random_passages(dice(size), range(1, size + 1)))
    for query in [*queries(limit, 60), "タ", "커", "the", "咖"]:
        found = index.search(query, scope=SCOPE, limit=limit)
        assert same(found, world.fts5.search(query, scope=SCOPE, limit=limit)), query


def random_scopes(chance: random.Random, ids: range) -> list[Passage]:
    return [
        replace(
            plain,
            vault=chance.choice((None, None, None, 7, 8)),
            session=chance.choice(("", "s1", "s2")),
            type=chance.choice(list(MemoryType)),
            is_shared=chance.random() < 0.2,
            is_pinned=chance.random() < 0.1,
            is_archived=chance.random() < 0.1,
            retained_ms=NOW_MS - chance.randrange(40),
            expires_ms=chance.choice((None, None, NOW_MS + chance.randrange(100))),
            owner=chance.choice((ALICE, BOB, CAROL)),
        )
        for plain in random_passages(chance, ids)
    ]


@pytest.mark.parametrize("scope", SCOPES)
def test_scopes_are_applied_before_the_best_are_chosen(
    world: KeywordWorld, scope: dict[str, Any]
) -> None:
    index = world.open()
    passages = random_scopes(dice(3), range(1, 701))
    index.upsert(passages)
    asked = Scope(**{"now_ms": NOW_MS, **scope})
    for query in queries(9, 25):
        found = index.search(query, scope=asked, limit=15)
        wanted = world.fts5.search(query, scope=asked, limit=700)
        # Frequencies are those of the parts searched, FTS5's those of the whole table: only
        # which passages there are, and how many, can be compared.
        assert {hit.passage_id for hit in found} <= {hit.passage_id for hit in wanted}
        assert len(found) == min(15, len(wanted))
        assert len(index.search(query, scope=asked, limit=700)) == len(wanted)


def test_shared_passages_of_the_owner_count_once(world: KeywordWorld) -> None:
    index = world.open()
    passages = random_passages(dice(4), range(1, 301))
    index.upsert([replace(one, is_shared=one.id % 3 == 0) for one in passages])
    asked = replace(SCOPE, include_shared=True)
    for query in queries(2, 20):
        found = index.search(query, scope=asked, limit=25)
        assert same(found, world.fts5.search(query, scope=asked, limit=25))


@pytest.mark.parametrize("match", [Match.ALL, Match.PHRASE])
def test_a_match_mode_does_not_tell_which_words_others_use(
    world: KeywordWorld, match: Match
) -> None:
    index = world.open()
    index.upsert([passage(1, "coffee on friday"), passage(2, "friday friday friday, coffee")])
    alone = index.search("friday", scope=SCOPE, limit=5, match=match)
    assert [hit.passage_id for hit in alone] == [2, 1]
    index.upsert([passage(number, "friday", owner=BOB) for number in range(3, 40)])
    assert index.search("friday", scope=SCOPE, limit=5, match=match) == alone


def test_the_passages_of_others_change_no_score(world: KeywordWorld) -> None:
    index = world.open()
    index.upsert(random_passages(dice(6), range(1, 101)))
    before = [index.search(query, scope=SCOPE, limit=20) for query in queries(1, 20)]
    index.upsert(random_passages(dice(7), range(200, 900), owner=BOB))
    assert [index.search(query, scope=SCOPE, limit=20) for query in queries(1, 20)] == before


@pytest.mark.parametrize(("k1", "b"), [(1.2, 0.75), (0.9, 0.4), (2.0, 0.0), (1.2, 1.0)])
def test_the_formula_has_the_parameters_it_is_given(
    world: KeywordWorld, k1: float, b: float
) -> None:
    index = world.open(formula=Formula(k1=k1, b=b, padding=3))
    index.upsert(
        [
            passage(1, "friday friday deploy", title="friday"),
            passage(2, "friday coffee tea release"),
            passage(3, "tea"),
            passage(4, "tea coffee"),
            passage(5, "release"),
        ]
    )
    lengths = {1: 7, 2: 7, 3: 4, 4: 5, 5: 4}
    average = sum(lengths.values()) / 5

    def score(number: int, frequency: int) -> float:
        idf = math.log((5 - 2 + 0.5) / (2 + 0.5))
        norm = k1 * (1 - b + b * lengths[number] / average)
        return idf * frequency * (k1 + 1) / (frequency + norm)

    found = index.search("friday", scope=SCOPE, limit=5)
    assert {hit.passage_id: hit.score for hit in found} == pytest.approx(
        {1: score(1, 7), 2: score(2, 1)}, rel=1e-5
    )


def test_nothing_is_left_out_when_common_words_are_skipped(world: KeywordWorld) -> None:
    """Many passages hold only common words: the best are found without reading those words."""
    index = world.open()
    crowd = [passage(number, "tea coffee of release") for number in range(1, 3001)]
    rare = [passage(number, f"tea deploy number{number}") for number in range(4001, 4031)]
    index.upsert([*crowd, *rare])
    for query in ("deploy tea coffee", "tea coffee release deploy number4007", "tea coffee"):
        for limit in (5, 30, 40):
            found = index.search(query, scope=SCOPE, limit=limit)
            assert found == sorted(found, key=lambda hit: (-hit.score, hit.passage_id))
            assert same(found, world.fts5.search(query, scope=SCOPE, limit=limit))


def test_equal_scores_at_the_last_place_are_ordered_by_id(world: KeywordWorld) -> None:
    index: PostingsIndex = world.open()
    index.upsert([passage(number, "tea") for number in range(50, 0, -1)])
    index.upsert([passage(number, "coffee") for number in range(51, 200)])
    found = index.search("tea", scope=SCOPE, limit=7)
    assert [hit.passage_id for hit in found] == list(range(1, 8))
