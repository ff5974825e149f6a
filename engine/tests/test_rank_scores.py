"""Score fusion."""

from __future__ import annotations

import pytest

from engine.rank.scores import combine
from engine.types import Candidate


def ranked(*pairs: tuple[int, float]) -> list[Candidate]:
    return [Candidate(item, rank, score) for rank, (item, score) in enumerate(pairs, start=1)]


def test_both_halves_count_the_same_after_normalising() -> None:
    fused = combine(ranked((1, 0.9), (2, 0.8), (3, 0.7)), ranked((3, 12.0), (1, 6.0)))
    assert [item for item, _ in fused] == [1, 3, 2]
    assert [score for _, score in fused] == pytest.approx([0.75, 0.5, 0.25])


def test_one_half_alone_keeps_its_order() -> None:
    assert [item for item, _ in combine(ranked((5, 0.9), (4, 0.8)), [])] == [5, 4]
    assert [item for item, _ in combine([], ranked((5, 3.0), (4, 1.0)))] == [5, 4]
    assert combine([], []) == []


def test_equal_scores_are_ordered_by_id() -> None:
    assert combine(ranked((9, 0.5), (2, 0.5)), []) == [(2, 0.5), (9, 0.5)]


def test_the_share_moves_weight_between_the_halves() -> None:
    vector, keyword = ranked((1, 0.9), (2, 0.1)), ranked((2, 4.0), (1, 0.4))
    assert combine(vector, keyword, vector_share=0.9)[0][0] == 1
    assert combine(vector, keyword, vector_share=0.1)[0][0] == 2
