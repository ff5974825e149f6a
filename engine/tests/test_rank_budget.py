from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.rank.budget import Fitted, fit


def indexes(tokens: list[int], max_tokens: int) -> list[int]:
    return [kept.index for kept in fit(tokens, max_tokens)]


@pytest.mark.parametrize(
    ("tokens", "max_tokens", "expected"),
    [
        ([25] * 10, 60, [0, 1]),
        ([9, 19], 20, [0]),
        ([13] * 20, 100, [0, 1, 2, 3, 4, 5, 6]),
        ([5, 5], 10, [0, 1]),
        ([5000, 4000], 16000, [0, 1]),
    ],
)
def test_budget_01_to_09_hits_are_taken_in_order_while_they_fit(
    tokens: list[int], max_tokens: int, expected: list[int]
) -> None:
    assert indexes(tokens, max_tokens) == expected


def test_budget_02_the_first_hit_is_kept_and_cut_to_the_budget() -> None:
    assert fit([30, 5], 20) == [Fitted(0, 20, is_truncated=True)]


def test_a_hit_that_does_not_fit_is_skipped_and_later_ones_may_fit() -> None:
    assert indexes([10, 50, 10], 25) == [0, 2]


def test_a_budget_of_nothing_keeps_nothing() -> None:
    assert fit([5], 0) == []
    assert fit([], 100) == []


@given(st.lists(st.integers(0, 500)), st.integers(0, 1000))
def test_the_budget_is_never_exceeded(tokens: list[int], max_tokens: int) -> None:
    kept = fit(tokens, max_tokens)
    assert sum(hit.tokens for hit in kept) <= max_tokens
    assert not tokens or max_tokens == 0 or kept[0].index == 0
