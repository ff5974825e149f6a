"""Random texts of mixed scripts, and what must hold for the chunks of any text."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import strategies as st

from engine.text.chunk import MAX_CHARS, OVERLAP, chunks

PIECES = (
    *"ab .\n\r\t,:。！？!?；…「」（）中文字検索ひらガナ한글ไทย",
    "\n\n",
    "\r\n",
    "e\u0301",
    "か\u3099",
    "\u0301\u0308",
    "😀",
    "👨‍👩‍👧‍👦",
    "🇯🇵",
    "👍🏽",
    "𠀀",
    "\u200b",
    "\u2028",
    "\ufeff",
    "word ",
    "すもももももももものうち。",
    "退款期为七天。",
    "Sentence one. ",
)

MIXED = st.one_of(
    st.lists(st.tuples(st.sampled_from(PIECES), st.integers(1, 300)), max_size=14).map(
        lambda runs: "".join(text * count for text, count in runs)
    ),
    st.lists(st.sampled_from(PIECES), max_size=1500).map("".join),
    st.text(st.characters(codec="utf-8"), max_size=2500),
)
"""Long runs (which force hard cuts), texts of many pieces, and any characters there are."""


def check_chunks(text: str) -> None:
    """Assert every promise of MS-CHUNK-1 for a text."""
    found = chunks(text)
    data = text.encode()
    assert bool(found) == bool(text.strip())
    assert found == chunks(text)
    for chunk in found:
        assert 0 < len(chunk.text) <= MAX_CHARS
        assert text[chunk.start : chunk.end] == chunk.text
        assert data[chunk.byte_start : chunk.byte_end].decode() == chunk.text
    for before, after in pairwise(found):
        assert before.start < after.start == before.end - OVERLAP
    assert not found or (found[0].start, found[-1].end) == (0, len(text))
    assert not found or (found[0].byte_start, found[-1].byte_end) == (0, len(data))
    for start in range(0, max(len(text) - OVERLAP, 0), 97):
        phrase = (start, start + OVERLAP)
        assert any(c.start <= phrase[0] and phrase[1] <= c.end for c in found) or not found
