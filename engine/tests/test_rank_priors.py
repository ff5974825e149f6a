"""Recency, use and dates."""

from __future__ import annotations

import pytest

from engine.rank import dates
from engine.rank.priors import HALF_LIFE_MS, Priors, apply
from engine.types import Place

NOW = int(10 * HALF_LIFE_MS)


def place(*, age: float = 0.0) -> Place:
    return Place("latin", 1, occurred_ms=int(NOW - age * HALF_LIFE_MS))


def test_off_means_untouched() -> None:
    assert not Priors().are_on
    assert apply([(1, 0.5)], {1: place()}, {1: 9}, Priors(), now_ms=NOW) == [(1, 0.5)]


def test_the_newer_of_two_equals_comes_first() -> None:
    places = {1: place(age=2), 2: place(age=0), 3: place(age=1)}
    found = apply([(1, 0.5), (2, 0.5), (3, 0.5)], places, {}, Priors(recency=0.5), now_ms=NOW)
    assert [key for key, _ in found] == [2, 3, 1]
    assert dict(found) == pytest.approx({2: 1.0 / 1.5, 3: 0.75 / 1.5, 1: 0.625 / 1.5})


def test_the_most_used_counts_fully_and_unused_not_at_all() -> None:
    places = {1: place(), 2: place()}
    found = apply([(1, 0.5), (2, 0.5)], places, {2: 7}, Priors(use=1.0), now_ms=NOW)
    assert dict(found) == pytest.approx({2: 0.75, 1: 0.25})


def test_a_moment_in_the_future_is_no_newer_than_now() -> None:
    found = apply([(1, 1.0)], {1: place(age=-3)}, {}, Priors(recency=1.0), now_ms=NOW)
    assert dict(found) == pytest.approx({1: 1.0})


def test_no_use_anywhere_changes_no_order() -> None:
    places = {1: place(), 2: place()}
    found = apply([(1, 0.6), (2, 0.5)], places, {}, Priors(use=1.0), now_ms=NOW)
    assert [key for key, _ in found] == [1, 2]


def test_the_time_asked_for_is_preferred_and_brings_what_no_word_found() -> None:
    found = dates.prefer([(1, 0.8), (2, 0.6)], [2, 3])
    assert [key for key, _ in found] == [2, 1, 3]
    assert [score for _, score in found] == pytest.approx([0.9 / 1.3, 0.8 / 1.3, 0.3 / 1.3])
