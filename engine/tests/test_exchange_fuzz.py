"""No file, however odd, makes a reader crash: it is read, refused, or refused as a whole."""

from __future__ import annotations

import json
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.exchange.found import Unreadable
from engine.exchange.read import Format
from engine.testing import exchange_files as files
from engine.testing.exchange_files import items

KNOWN: Final[tuple[bytes, ...]] = (
    json.dumps(files.chatgpt()).encode(),
    json.dumps(files.claude()).encode(),
    json.dumps(files.claude_memory()).encode(),
    json.dumps(files.mem0()).encode(),
    files.graph().encode(),
    files.openmemory(),
    b'key,content\r\n"a","b\nc"\r\n',
    b"---\nmemory-key: x\ntags: [a]\n---\ntext",
)
NAMES: Final = st.sampled_from(["", "a.json", "a.md", "a.csv", "a.zip", "a.jsonl.gz"])
FORMATS: Final = st.sampled_from(list(Format))


def look(data: bytes, name: str, wanted: Format) -> None:
    """Read everything."""
    try:
        for item in items(data, name, wanted=wanted, assistant=True):
            assert item.place.number >= 0
    except Unreadable as error:
        assert error.code != "unreadable"


@given(data=st.binary(max_size=200), name=NAMES, wanted=FORMATS)
@settings(max_examples=400, deadline=None, derandomize=True)
def test_any_bytes(data: bytes, name: str, wanted: Format) -> None:
    look(data, name, wanted)


@given(
    known=st.sampled_from(KNOWN),
    place=st.integers(0, 2000),
    new=st.binary(min_size=0, max_size=6),
    taken=st.integers(0, 30),
    wanted=FORMATS,
)
@settings(max_examples=500, deadline=None, derandomize=True)
def test_a_file_with_a_piece_of_it_changed(
    known: bytes, place: int, new: bytes, taken: int, wanted: Format
) -> None:
    place %= len(known)
    look(known[:place] + new + known[place + taken :], "", wanted)


WORDS: Final = (
    "mapping message author role content parts content_type current_node parent metadata "
    "chat_messages sender text uuid memory results data relations source relationship "
    "target entities name entityType observations type from to relationType state "
    "categories category_ids apps app_id conversations_memory project_memories"
)
JSON: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(WORDS.split()), inner, max_size=5)
    ),
    max_leaves=12,
)


@given(document=JSON, wanted=FORMATS)
@settings(max_examples=500, deadline=None, derandomize=True)
def test_the_words_of_every_system_in_any_order(document: object, wanted: Format) -> None:
    look(json.dumps([document]).encode(), "", wanted)
    look(json.dumps(document).encode(), "", wanted)


@pytest.mark.parametrize("wanted", list(Format))
@pytest.mark.parametrize("text", ["x" * 300_000, "a," * 100_000, '"' * 200_001, "\r" * 1000])
def test_a_first_line_without_end(text: str, wanted: Format) -> None:
    look(text.encode(), "", wanted)
