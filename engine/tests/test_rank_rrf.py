from __future__ import annotations

import pytest

from engine.rank.rrf import fuse


def rounded(*lists: list[str], k: int = 60) -> list[tuple[str, float]]:
    return [(item, round(score, 9)) for item, score in fuse(lists, k=k)]


def test_rrf_01_ranks_of_both_lists_add_up() -> None:
    assert rounded(["a", "b", "c"], ["c", "a", "d"]) == [
        ("a", 0.032522475),
        ("c", 0.032266458),
        ("b", 0.016129032),
        ("d", 0.015873016),
    ]


def test_rrf_02_ties_are_ordered_by_id() -> None:
    assert rounded(["b"], ["a"]) == [("a", 0.016393443), ("b", 0.016393443)]


def test_rrf_03_an_empty_list_adds_nothing() -> None:
    assert rounded(["a", "b"], []) == [("a", 0.016393443), ("b", 0.016129032)]
    assert rounded([], []) == []


def test_rrf_11_k_may_be_changed() -> None:
    assert round(dict(fuse([["a"], ["b", "a"]], k=10))["a"], 6) == 0.174242


def test_any_number_of_lists_is_fused_with_weights() -> None:
    fused = fuse([[1, 2], [2, 1], [2]], weights=[1.0, 1.0, 0.5])
    assert [item for item, _ in fused] == [2, 1]
    assert fused[0][1] == pytest.approx(1 / 62 + 1 / 61 + 0.5 / 61)


def test_only_the_first_place_of_an_id_within_a_list_counts() -> None:
    assert fuse([["a", "a", "b"]]) == fuse([["a", "b"]])


def test_weights_are_one_for_each_list() -> None:
    with pytest.raises(ValueError, match="weight"):
        fuse([["a"]], weights=[1.0, 2.0])


def test_k_is_not_negative() -> None:
    with pytest.raises(ValueError, match="k"):
        fuse([["a"]], k=-1)
