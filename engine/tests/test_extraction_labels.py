"""The labelled turns are frozen: they were written before the rules, half of them by someone who
has not seen a rule, and nobody fits them to the rules afterwards."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

LABELS = Path(__file__).with_name("extraction_labels")
FROZEN = {
    "en_a.json": "797757498edb504a6f38deec16c455f57d9ec086ca53fd172e303a06ad25c111",
    "en_b.json": "d7d2b738c81b789fc1fd975e8294e356115f0e1e701d282918734a9da8ea6120",
    "ja_a.json": "32691ae827b905e445175aac8f7e28d64433ff0a01e8823c32ca96934968d265",
    "ja_b.json": "04dce3894b0c9d05301936a12a85f8256ff8091689d60e4d08697a44328d50b1",
    "zh_a.json": "1083546ea2b4e5ff105162d66f5277774f2171dd48352cf6ad8a28a640b4be1c",
    "zh_b.json": "3b00ef01f5d19c15073f0cfae96baf3e34753277616ccae5c615312ee875729a",
}


@pytest.mark.parametrize("name", FROZEN)
def test_labels_are_those_that_were_frozen(name: str) -> None:
    assert hashlib.sha256((LABELS / name).read_bytes()).hexdigest() == FROZEN[name]


@pytest.mark.parametrize("language", ["en", "ja", "zh"])
def test_each_language_has_sixty_turns_or_more_with_negatives(language: str) -> None:
    turns = [
        turn
        for half in "ab"
        for turn in json.loads((LABELS / f"{language}_{half}.json").read_text(encoding="utf-8"))
    ]
    assert len(turns) >= 60
    assert sum(not turn["facts"] for turn in turns) >= 20
    assert {turn["role"] for turn in turns} <= {"user", "assistant"}
