"""Where passages stand in a conversation: their neighbours, within the scope only."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from engine.types import MemoryType, Scope
from memory.models import Memory
from memory.passage_reader import PassageReader
from memory.principal import Principal
from memory.tests.asking import days_ago
from memory.tests.conftest import Remember
from memory.tests.standing import passage_of, scope_of

MOMENT = datetime(2026, 5, 1, tzinfo=UTC)


def _beside(memory: Memory, scope: Scope) -> tuple[int | None, int | None]:
    return PassageReader().beside([passage_of(memory)], scope)[passage_of(memory)]


def test_turns_of_one_moment_follow_one_another_as_stored(
    alice: Principal, remember: Remember
) -> None:
    late = remember(alice, "late", session_id="s", occurred_at=datetime(2026, 5, 2, tzinfo=UTC))
    said = [remember(alice, f"turn {n}", session_id="s", occurred_at=MOMENT) for n in range(3)]
    first, second, third = map(passage_of, said)
    scope = scope_of(alice)
    assert [_beside(memory, scope) for memory in said] == [
        (None, second),
        (first, third),
        (second, passage_of(late)),
    ]
    assert _beside(late, scope) == (third, None)


@pytest.mark.parametrize(
    "hidden",
    [
        {"expires_at": days_ago(1)},
        {"created_at": days_ago(90), "retained_at": days_ago(90)},
        {"type": "episodic"},
        {"session_id": "other"},
    ],
)
def test_a_turn_that_the_scope_does_not_see_is_no_neighbour(
    alice: Principal, remember: Remember, hidden: dict[str, Any]
) -> None:
    said = []
    for place, changes in enumerate(({}, hidden, {})):
        fields = {"session_id": "s", "occurred_at": MOMENT} | changes
        said.append(remember(alice, f"turn {place}", **fields))
    first, _unseen, last = said
    scope = scope_of(alice, types=(MemoryType.FACTUAL,))
    assert _beside(first, scope) == (None, passage_of(last))
    assert _beside(last, scope) == (passage_of(first), None)


def test_another_owners_turn_is_no_neighbour_even_where_both_are_shared_with_all(
    alice: Principal, manager: Principal, remember: Remember
) -> None:
    own = remember(alice, "own", session_id="s", occurred_at=MOMENT)
    remember(manager, "shared", session_id="s", occurred_at=MOMENT, is_shared=True)
    assert _beside(own, scope_of(alice, include_shared=True)) == (None, None)


def test_places_of_very_many_passages_are_read_at_once(
    alice: Principal, remember: Remember
) -> None:
    memory = remember(alice, "one of many", session_id="s")
    reader = PassageReader()
    assert passage_of(memory) in reader.places(range(40_000))
    assert passage_of(memory) in reader.beside(range(40_000), scope_of(alice))
