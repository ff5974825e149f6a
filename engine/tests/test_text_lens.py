"""The lens shows each term of an analyzer at the place of the source it came from."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.text.lens import Lens, TokenKind, lens
from engine.text.tokenize import analyzer
from engine.types import Purpose

SEARCH = analyzer("search")
TEXTS = (
    "What's Caroline's favourite Node.js version, gpt-4o or C++?",
    "I don't like 1,000,000 state-of-the-art 🎉 .NET snake_case",
    "昨天我去了东京吗",
    "東京へ行ったのはいつですか",
    "カフェで１２３ｶﾞｽ café ﬁnal ㍿",
    "서울에서 만났다",
    "the the",
    "。。。",
    "",
)


def seen(text: str, purpose: Purpose = Purpose.QUERY) -> Lens:
    return lens(text, analyzer=SEARCH, purpose=purpose)


def tokens(text: str, purpose: Purpose = Purpose.QUERY) -> list[tuple[str, str, str]]:
    return [(token.text, token.term, token.kind.value) for token in seen(text, purpose).tokens]


@pytest.mark.parametrize("name", ["search", "seed"])
@pytest.mark.parametrize("purpose", Purpose)
@pytest.mark.parametrize("text", TEXTS)
def test_exactly_the_terms_of_the_analyzer_are_indexed(
    text: str, purpose: Purpose, name: str
) -> None:
    cutter = analyzer(name)
    found = lens(text, analyzer=cutter, purpose=purpose)
    terms = cutter.query_terms(text) if purpose is Purpose.QUERY else cutter.document_terms(text)
    assert {token.term for token in found.tokens if token.is_indexed} == set(terms)
    assert found.terms == tuple(dict.fromkeys(terms))


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=40), st.sampled_from(list(Purpose)))
def test_any_text_is_shown_whole_and_in_place(text: str, purpose: Purpose) -> None:
    found = seen(text, purpose)
    expected = SEARCH.query_terms(text) if purpose is Purpose.QUERY else SEARCH.document_terms(text)
    assert {token.term for token in found.tokens if token.is_indexed} == set(expected)
    for token in found.tokens:
        assert 0 <= token.start <= token.end <= len(text)
        assert token.text == text[token.start : token.end]


def test_a_code_like_word_is_whole_and_in_parts() -> None:
    assert tokens("Node.js") == [
        ("Node.js", "node.js", "code-whole"),
        ("Node", "node", "code-part"),
        ("js", "js", "code-part"),
    ]


def test_a_word_in_another_form_is_a_stem() -> None:
    assert tokens("running went") == [("running", "run", "stem"), ("went", "go", "stem")]


def test_a_query_shows_the_stop_words_it_leaves_out() -> None:
    assert tokens("what is tea") == [
        ("what", "what", "stop"),
        ("is", "is", "stop"),
        ("tea", "tea", "word"),
    ]
    assert {token.kind for token in seen("what is tea", Purpose.DOCUMENT).tokens} <= {
        TokenKind.WORD,
        TokenKind.STEM,
    }


def test_chinese_is_cut_into_pairs_between_its_particles() -> None:
    assert tokens("昨天我去了东京吗") == [
        ("昨天", "昨天", "bigram"),
        ("我", "我", "stop"),
        ("去", "去", "word"),
        ("了", "了", "stop"),
        ("东京", "东京", "bigram"),
        ("吗", "吗", "stop"),
    ]


def test_what_folding_makes_longer_or_shorter_keeps_its_place() -> None:
    assert ("ｶﾞｽ", "ガス", "bigram") in tokens("ｶﾞｽ")
    assert ("１２３", "123", "word") in tokens("１２３")
    assert ("café", "cafe", "stem") in tokens("café")


def test_the_lens_names_language_and_analyzer() -> None:
    found = seen("Tee ＡＢＣ")
    assert (found.folded, found.language, found.analyzer) == ("tee abc", "latin", SEARCH.version)
    assert seen("東京へ").language == "ja"


def test_an_empty_text_has_no_token() -> None:
    assert seen("").tokens == ()
