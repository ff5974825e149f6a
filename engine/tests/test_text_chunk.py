from __future__ import annotations

import hashlib

import pytest
from hypothesis import given, settings

from engine.testing.mixed_text import MIXED, check_chunks
from engine.text.chunk import byte_range, chunks


def ranges(text: str) -> list[tuple[int, int]]:
    return [(chunk.start, chunk.end) for chunk in chunks(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \n\t" * 5, []),
        ("🚀", [(0, 1)]),
        ("a" * 768, [(0, 768)]),
        ("a" * 1408, [(0, 768), (640, 1408)]),
        ("a" * 1409, [(0, 768), (640, 1408), (1280, 1409)]),
        ("字" * 500 + "\n\n" + "符" * 500, [(0, 502), (374, 1002)]),
        ("字" * 300 + "\n\n" + "符" * 700, [(0, 768), (640, 1002)]),
        ("word " * 400, [(0, 765), (637, 1405), (1277, 2000)]),
        ("a.b.c.d." * 200, [(0, 768), (640, 1408), (1280, 1600)]),
        ("「こんにちは。」" * 150, [(0, 768), (640, 1200)]),
    ],
)
def test_chunk_01_to_24_cuts_fall_where_the_rule_says(
    text: str, expected: list[tuple[int, int]]
) -> None:
    assert ranges(text) == expected


def test_a_sentence_end_is_better_than_a_later_line_break() -> None:
    text = "x" * 400 + ". " + "y" * 200 + "\n" + "z" * 600
    assert ranges(text)[0] == (0, 402)


def test_a_chunk_knows_its_hash_and_its_bytes() -> None:
    chunk = chunks("ab中😀" * 300)[1]
    assert (chunk.byte_start, chunk.byte_end) == (1440, 2700)
    assert chunk.sha256 == hashlib.sha256(chunk.text.encode()).hexdigest()


@pytest.mark.parametrize(
    ("body", "part", "expected"),
    [
        ("RAG 检索🚀", "检索", (4, 10)),
        ("RAG 检索🚀", "🚀", (10, 14)),
        ("A𠀀B", "B", (5, 6)),
        ("ｆｕｌｌ width", "width", (13, 18)),
        ("日本語テキスト", "テキスト", (9, 21)),
    ],
)
def test_byte_offset_01_to_07_offsets_are_bytes_of_the_original(
    body: str, part: str, expected: tuple[int, int]
) -> None:
    start = body.index(part)
    assert byte_range(body, start, start + len(part)) == expected


@given(MIXED)
@settings(max_examples=150, deadline=None, database=None)
def test_chunks_of_any_mixed_text_keep_every_promise(text: str) -> None:
    check_chunks(text)
