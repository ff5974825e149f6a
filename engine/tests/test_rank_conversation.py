"""What turns around a turn, sessions and speakers add to an order."""

from __future__ import annotations

from engine.rank.conversation import converse, neighbours
from engine.types import Place


def turn(speaker: str = "", *, session: str = "s") -> Place:
    return Place("latin", 1, session, speaker)


def order(
    scores: list[tuple[int, float]], places: dict[int, Place], query: str = "what"
) -> list[int]:
    return [passage_id for passage_id, _ in converse(scores, places, {}, query)]


def test_without_sessions_the_order_and_the_scores_stay() -> None:
    scores = [(1, 0.9), (2, 0.4)]
    places = {1: turn("Ana", session=""), 2: turn("Bo", session="")}
    assert converse(scores, places, {}, "what did Bo say") == scores


def test_a_turn_between_two_good_turns_comes_in() -> None:
    places = {1: turn(), 2: turn(), 3: turn(), 9: turn(session="other")}
    beside = {1: (None, 2), 3: (2, None), 9: (None, None)}
    found = converse([(1, 0.9), (3, 0.9), (9, 0.1)], places, beside, "what")
    assert 2 in dict(found)
    assert dict(found)[2] > dict(found)[9]
    assert all(0 <= score <= 1 for _, score in found)


def test_neighbours_are_named_once_and_only_when_unknown() -> None:
    places = {1: turn(), 3: turn()}
    assert neighbours({1: (None, 2), 3: (2, 1)}, places) == {2}


def test_a_neighbour_without_a_place_is_left_out() -> None:
    found = converse([(1, 1.0)], {1: turn()}, {1: (7, None)}, "what")
    assert [passage_id for passage_id, _ in found] == [1]


def test_the_better_session_lifts_its_turns() -> None:
    places = {1: turn(), 2: turn(), 3: turn(), 8: turn(session="other")}
    assert order([(8, 0.52), (1, 0.5), (2, 0.5), (3, 0.5)], places) == [1, 2, 3, 8]


def test_sessions_of_two_owners_with_one_name_are_two() -> None:
    mine, theirs = turn(), Place("latin", 2, "s")
    places = {1: mine, 2: mine, 3: mine, 4: theirs}
    assert order([(4, 0.52), (1, 0.5), (2, 0.5), (3, 0.5)], places) == [1, 2, 3, 4]


def test_who_is_named_in_the_query_comes_first() -> None:
    places = {1: turn("Melanie"), 2: turn("Caroline Smith")}
    assert order([(1, 0.5), (2, 0.5)], places, "What did Caroline say?") == [2, 1]
    assert order([(1, 0.5), (2, 0.5)], places, "What did Carol say?") == [1, 2]


def test_a_name_without_spaces_around_it_is_seen() -> None:
    places = {1: turn("小红"), 2: turn("小明")}
    assert order([(1, 0.5), (2, 0.5)], places, "小明昨天说了什么") == [2, 1]
