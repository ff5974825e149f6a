"""Score fusion."""

from __future__ import annotations

import pytest

from engine.rank.scores import ScoreList, by_best, by_range, combine
from engine.types import Candidate


def ranked(*pairs: tuple[int, float]) -> list[Candidate]:
    return [Candidate(item, rank, score) for rank, (item, score) in enumerate(pairs, start=1)]


def test_cosines_fill_the_range_and_words_are_shares_of_the_best() -> None:
    assert by_range(ranked((1, 0.9), (2, 0.8), (3, 0.7))) == pytest.approx({1: 1.0, 2: 0.5, 3: 0.0})
    assert by_best(ranked((3, 12.0), (1, 6.0))) == {3: 1.0, 1: 0.5}
    assert by_range([]) == by_best([]) == {}


def test_a_single_candidate_counts_fully() -> None:
    assert by_range(ranked((7, -0.2))) == {7: 1.0}
    assert by_best(ranked((7, 0.0))) == {7: 1.0}


def test_scores_are_the_weighted_mean() -> None:
    fused = combine([ScoreList({1: 1.0, 2: 0.5}, 0.4), ScoreList({3: 1.0, 1: 0.5}, 0.6)])
    assert [item for item, _ in fused] == [1, 3, 2]
    assert [score for _, score in fused] == pytest.approx([0.7, 0.6, 0.2])


def test_any_number_of_lists_is_taken() -> None:
    lists = [ScoreList({1: 1.0}), ScoreList({2: 1.0}), ScoreList({2: 1.0})]
    assert dict(combine(lists)) == pytest.approx({2: 2 / 3, 1: 1 / 3})
    assert combine([]) == combine([ScoreList({1: 1.0}, 0.0)]) == []


def test_equal_scores_are_ordered_by_id() -> None:
    assert combine([ScoreList({9: 0.5, 2: 0.5})]) == [(2, 0.5), (9, 0.5)]


def test_a_list_that_cannot_judge_a_passage_does_not_speak_against_it() -> None:
    vector = ScoreList({1: 1.0, 2: 0.9})
    words = ScoreList({2: 1.0}, unknown={1})
    assert dict(combine([vector, words])) == pytest.approx({1: 1.0, 2: 0.95})
    assert combine([vector, ScoreList({2: 1.0})])[0][0] == 2


def test_a_match_that_such_a_list_has_all_the_same_still_counts() -> None:
    vector, words = ScoreList({1: 0.2}), ScoreList({1: 1.0}, unknown={1})
    assert dict(combine([vector, words])) == pytest.approx({1: 0.6})
