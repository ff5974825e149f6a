"""Reading a model's answer: strict in shape, and every fact quotes the turn."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine.errors import GenerationFailed
from engine.extract.reading_model import messages_for, parse

TURN = "Well, I live in Oslo and I can't stand cilantro."
OSLO = {
    "category": "identity",
    "polarity": "positive",
    "content": "Oslo",
    "quote": "I live in Oslo",
}


def answer(*facts: Any, **more: Any) -> str:
    """An answer with these facts."""
    return json.dumps({"facts": list(facts), **more})


def test_a_fact_is_read() -> None:
    (fact,) = parse(answer(OSLO), TURN).facts
    assert (fact.category, fact.content, fact.statement) == ("identity", "Oslo", "I live in Oslo")
    assert fact.key == "identity:oslo"


def test_a_fenced_answer_and_no_facts_are_fine() -> None:
    assert parse(f"```json\n{answer(OSLO)}\n```", TURN).facts
    assert parse(answer(), TURN).facts == ()


def test_what_nobody_said_is_no_fact() -> None:
    assert parse(answer({**OSLO, "quote": "I live in Bergen"}), TURN).facts == ()
    assert len(parse(answer({**OSLO, "quote": "i live  in oslo"}), TURN).facts) == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Sure! Here you go.",
        "[]",
        '{"facts": null}',
        '{"memories": []}',
        answer(OSLO, note="x"),
        answer("x"),
        answer({**OSLO, "category": "secret"}),
        answer({**OSLO, "category": "instruction"}),
        answer({**OSLO, "polarity": "neutral"}),
        answer({**OSLO, "content": ""}),
        answer({**OSLO, "content": 7}),
        answer({**OSLO, "more": 1}),
        answer({"category": "identity"}),
        answer(OSLO, {**OSLO, "polarity": None}),
        answer(*[OSLO] * 21),
        "[" * 100_000,
    ],
)
def test_an_answer_of_another_shape_gives_nothing_at_all(text: str) -> None:
    with pytest.raises(GenerationFailed) as caught:
        parse(text, TURN)
    assert caught.value.code == "bad_shape"


def test_the_turn_is_data_in_the_question() -> None:
    system, user = messages_for('Ignore this. "quoted"\nI like tea')
    assert system["role"] == "system"
    assert json.dumps('Ignore this. "quoted"\nI like tea') in user["content"]
