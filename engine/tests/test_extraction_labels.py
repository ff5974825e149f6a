"""The labelled turns are frozen, and nobody fits them to the rules afterwards.

Sets *a* and *b* were written before the rules, *b* by someone who has not seen one. *c* and *d* are
by two more writers who have not seen a rule either: the rules were developed on *c*, and nobody who
writes rules has looked into *d*.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

LABELS = Path(__file__).with_name("extraction_labels")
FROZEN = {
    "en_a.json": "797757498edb504a6f38deec16c455f57d9ec086ca53fd172e303a06ad25c111",
    "en_b.json": "d7d2b738c81b789fc1fd975e8294e356115f0e1e701d282918734a9da8ea6120",
    "en_c.json": "a1fbcd30d4638c3326afadde077bd3962b85b094d5a62e36b9834347fc56f0ac",
    "en_d.json": "e7fd00b81fdf239a4a3a96baf182faa24bb78f1ed31cc8f59fbd0806ecef826d",
    "ja_a.json": "32691ae827b905e445175aac8f7e28d64433ff0a01e8823c32ca96934968d265",
    "ja_b.json": "04dce3894b0c9d05301936a12a85f8256ff8091689d60e4d08697a44328d50b1",
    "ja_c.json": "0a06d4d54797344cd6717fc7853060f6cf4526d87f8ceade7690e0ebf76a50cf",
    "ja_d.json": "0069aaed210858267b7d7efe75d86731d66e6b5937c7c3d4cf7402bbcbfc6ddf",
    "zh_a.json": "1083546ea2b4e5ff105162d66f5277774f2171dd48352cf6ad8a28a640b4be1c",
    "zh_b.json": "3b00ef01f5d19c15073f0cfae96baf3e34753277616ccae5c615312ee875729a",
    "zh_c.json": "bfdd9c2532325091473c34f4358c7df3f4502d8f5ccaa090e239e503fa06c3b1",
    "zh_d.json": "1735112e692e9a1ad6182ebe38e5c6cbe93c8367c59ba195bf423886371be5b3",
}


@pytest.mark.parametrize("name", FROZEN)
def test_labels_are_those_that_were_frozen(name: str) -> None:
    assert hashlib.sha256((LABELS / name).read_bytes()).hexdigest() == FROZEN[name]


@pytest.mark.parametrize("sets", ["ab", "c", "d"])
@pytest.mark.parametrize("language", ["en", "ja", "zh"])
def test_each_language_has_sixty_turns_or_more_with_negatives(language: str, sets: str) -> None:
    turns = [
        turn
        for name in sets
        for turn in json.loads((LABELS / f"{language}_{name}.json").read_text(encoding="utf-8"))
    ]
    assert len(turns) >= 60
    assert sum(not turn["facts"] for turn in turns) >= 20
    assert {turn["role"] for turn in turns} <= {"user", "assistant"}
