from __future__ import annotations

import sys
from subprocess import run

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.text.tokenize import analyzer

SEED, SEARCH = analyzer("seed"), analyzer("search")


def test_an_unknown_analyzer_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="nobody"):
        analyzer("nobody")


def test_seed_keeps_words_numbers_and_emoji_and_drops_punctuation() -> None:
    text = "所有订单7天内可退款。Refunds are issued in 7 days. 🚀"
    assert SEED.document_terms(text) == [
        *("所有", "订单", "7", "天内", "可", "退款"),
        *("refunds", "are", "issued", "in", "7", "days", "🚀"),
    ]


def test_seed_terms_of_a_query_are_distinct_and_in_order() -> None:
    assert SEED.query_terms("limits RATE limits") == ["limits", "rate"]


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("gpt-4o", ["gpt-4o", "gpt", "4o"]),
        ("Node.js", ["node.js", "node", "js"]),
        ("snake_case", ["snake_case", "snake", "case"]),
        ("C++ C# C", ["c++", "c", "c#"]),
        (".env", [".env", "env"]),
        ("...and", []),
        ("me@example.com", ["me@example.com", "exampl", "com"]),
        ("well-known", ["well", "know"]),
        ("1,000,000 users", ["1000000", "user"]),
        ("Caroline's", ["carolin"]),
        ("Caroline\u2019s", ["carolin"]),
        ("café", ["cafe"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("__", []),
    ],
)
def test_search_keeps_code_like_words_whole_and_in_pieces(text: str, terms: list[str]) -> None:
    kept = [term for term in SEARCH.query_terms(text) if term not in ("and", "me")]
    assert kept == terms


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("running", "runs"),
        ("went", "go"),
        ("children", "child"),
        ("bought", "buying"),
        ("mom", "mother"),
        ("ｐｏｌｉｃｙ", "Policies"),
    ],
)
def test_search_brings_forms_of_a_word_together(one: str, other: str) -> None:
    assert SEARCH.document_terms(one) == SEARCH.document_terms(other)


def test_search_leaves_question_words_out_of_a_query_but_not_of_a_document() -> None:
    assert SEARCH.query_terms("When did Melanie paint a sunrise?") == ["melani", "paint", "sunris"]
    assert "when" in SEARCH.document_terms("when")
    assert SEARCH.query_terms("是谁的咖啡？") == ["咖啡"]


@pytest.mark.parametrize("text", ["who are you", "what is it?", "是什么", "don't", "的"])
def test_search_never_empties_a_query(text: str) -> None:
    terms = SEARCH.query_terms(text)
    assert terms
    assert set(terms) <= set(SEARCH.document_terms(text))


def test_search_gives_pairs_of_chinese_japanese_korean_and_thai() -> None:
    assert "咖啡" in SEARCH.document_terms("我喜欢喝咖啡")
    assert "タワ" in SEARCH.document_terms("東京タワー")
    assert "커피" in SEARCH.document_terms("커피를")
    assert "กา" in SEARCH.document_terms("กาแฟ")


def test_search_words_of_a_query_are_those_a_person_would_count() -> None:
    assert SEARCH.words("谁喜欢咖啡 with Milk?") == ["喜欢", "咖啡", "milk"]
    assert SEARCH.words("東京タワーの写真") == ["东京", "タワー", "写真"]


@given(st.text(max_size=80))
@settings(max_examples=200, deadline=None, database=None)
def test_terms_of_any_text_hold_no_space_and_queries_meet_documents(text: str) -> None:
    for one in (SEED, SEARCH):
        document = one.document_terms(text)
        assert not any(set(term) & set(" \n\t\0") or not term for term in document)
        query = one.query_terms(text)
        assert bool(query) == bool(document)
        assert set(query) <= set(document)


def test_cutting_documents_loads_no_chinese_dictionary() -> None:
    code = (
        "import sys; from engine.text.tokenize import analyzer;"
        "analyzer('search').document_terms('我喜欢喝咖啡 coffee');"
        "raise SystemExit('rjieba' in sys.modules or 'jieba' in sys.modules)"
    )
    assert run([sys.executable, "-c", code], check=False).returncode == 0
