"""Our tokenizer of multilingual-e5-small against the library's, and what it does by itself."""

from __future__ import annotations

import random
import unicodedata
from functools import cache

import pytest

from engine.embed import catalogue, charsmap, e5_repack, e5_tokenizer, packaged
from engine.embed.e5_weights import Vocabulary
from engine.embed.unigram import Unigram
from engine.errors import EmbeddingFailed
from engine.testing.contracts_embed import ODD, SENTENCES
from engine.testing.reference_tokenizer import packaged_reference

TEXTS = (
    *SENTENCES,
    *(text for text in ODD if len(text) < 1000 and not {"\ud800", "\u0301"} & set(text)),
    "query: how much protein should a female eat",
    "Ｆｕｌｌ　ｗｉｄｔｈ，ﾊﾝｶｸ ガ ㍿ ㋿ ½ ﬁ ™",
    "cafe\u0301 naïve Å\u030a Việt Nam हिन्दी ไทย العربية עברית 한국어",
    "tabs\tand\nlines\r\n  and   runs   of blanks  ",
    "\u00a0no\u2003break\u200b\u200d \u00ad soft\u3000wide",
    "gpt-4o Node.js snake_case C++ https://example.com/a?b=1#c 1,234.56 €",
    "一二三四五六七八九十" * 20,
    "😀👩‍👩‍👧‍👦🏳️‍🌈 \U0001f9ff\U0010ffff",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
)
SMALL = Vocabulary(
    ("<s>", "<pad>", "</s>", "<unk>", "▁", "▁tea", "▁te", "a", "t", "e", "ab", "b"),
    (0.0, 0.0, 0.0, 0.0, -2.0, -3.0, -1.0, -1.5, -5.0, -5.0, -4.0, -4.0),
    bos=0, eos=2, pad=1, unk=3,
)  # fmt: skip


@cache
def table() -> bytes:
    paths = packaged.locate(catalogue.find(e5_repack.ID))
    return charsmap.table_of(paths[e5_tokenizer.SENTENCEPIECE].read_bytes())


@pytest.fixture(scope="module")
def ours() -> Unigram:
    return e5_tokenizer.load(catalogue.find(e5_repack.ID), 512)


def small(max_tokens: int = 16) -> Unigram:
    return Unigram(SMALL, charsmap.Charsmap(table()), max_tokens=max_tokens)


def test_texts_are_cut_as_by_the_library(ours: Unigram) -> None:
    library = packaged_reference()
    library.enable_truncation(512)
    for text, cut in zip(TEXTS, ours.encode(TEXTS), strict=True):
        assert cut.ids == library.encode(text).ids, text


def test_random_texts_are_cut_as_by_the_library(ours: Unigram) -> None:
    library = packaged_reference()
    library.enable_truncation(512)
    drawn = random.Random(5)  # noqa: S311 (no secret)
    ranges = [(0x20, 0x17F), (0x370, 0x52F), (0x3000, 0x30FF), (0x4E00, 0x9FFF), (0xFF00, 0xFFEF)]
    letters = [
        chr(code)
        for low, high in ranges
        for code in range(low, high)
        # The library replaces whole grapheme clusters by what its first match stands for, where
        # SentencePiece takes the longest: marks that combine are compared above, not here.
        if not unicodedata.combining(chr(code)) and chr(code) not in "\x7f\x8f\x9fﾞﾟ"
    ]
    for _ in range(300):
        text = "".join(drawn.choice(letters) + " " * (drawn.random() < 0.2) for _ in range(60))
        assert ours.encode([text])[0].ids == library.encode(text).ids, text


def test_the_special_tokens_of_a_text_are_ordinary_words(ours: Unigram) -> None:
    (cut,) = ours.encode(["<s> </s> <pad> <unk>"])
    assert cut.ids[0] == 0
    assert cut.ids[-1] == 2
    assert not {0, 1, 2, 3} & set(cut.ids[1:-1])


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("tea", [0, 6, 7, 2]),  # ▁te and a beat ▁tea
        ("te", [0, 6, 2]),
        ("ab", [0, 4, 10, 2]),
        ("xyz", [0, 4, 3, 2]),  # unknown side by side is one
        ("xax", [0, 4, 3, 7, 3, 2]),
        ("", [0, 2]),
        ("  ", [0, 4, 2]),
        ("te ", [0, 6, 4, 2]),
        (" te", [0, 6, 2]),
    ],
)
def test_the_likeliest_pieces_are_taken(text: str, ids: list[int]) -> None:
    assert small().encode([text, text])[1].ids == ids


def test_a_text_is_cut_after_the_number_of_tokens() -> None:
    (cut,) = small(6).encode(["te te te te te te"])
    assert cut.ids == [0, 6, 6, 6, 6, 2]
    assert cut.words == [1, 1, 1, 1]
    assert cut.type_ids == [0] * 6


def test_the_tokens_of_a_prompt_are_told_from_those_of_the_text() -> None:
    (cut, places), (_, everything) = small().marked([("te tea ab", 3), ("te tea ab", 0)])
    assert cut.ids == [0, 6, 6, 7, 4, 10, 2]
    assert places == [2, 3, 4, 5]
    assert everything == [1, 2, 3, 4, 5]
    ((_, blank),) = small().marked([("te ", 3)])
    assert blank == []


def test_a_sequence_is_replaced_longest_first() -> None:
    rules = charsmap.Charsmap(table())
    assert rules.apply("cafe\u0301 ガ Ａ㍿") == "caf\u00e9 ガ A株式会社"
    assert rules.apply("ｶﾞ か\u3099 a\u0301\u0301") == "ガ が \u00e1\u0301"
    assert rules.apply("\u1112\u1161\u11ab") == "한"
    assert rules.apply("plain ASCII") == "plain ASCII"
    assert rules.apply("") == ""


def test_a_file_without_a_table_is_refused() -> None:
    with pytest.raises(EmbeddingFailed, match="unknown format"):
        charsmap.table_of(b"")
