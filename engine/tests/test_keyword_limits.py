from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import InvalidQuery
from engine.keyword.limits import MAX_QUERY_BYTES, MAX_TERMS, check_query, shorten_query
from engine.text.tokenize import analyzer


def refusal(text: str = "退款", limit: int = 8, mode: str = "keyword", match: str = "any") -> str:
    try:
        check_query(text, limit, mode, match)
    except InvalidQuery as error:
        return error.code
    return "ok"


@pytest.mark.parametrize(
    ("limit", "expected"),
    [(1, "ok"), (100, "ok"), (101, "limit_out_of_range"), (0, "limit_out_of_range")],
)
def test_limits_02_to_04_the_limit_is_1_to_100(limit: int, expected: str) -> None:
    assert refusal(limit=limit) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a" * 1024, "ok"),
        ("a" * 1025, "query_too_long"),
        ("中" * 341, "ok"),
        ("中" * 342, "query_too_long"),
    ],
)
def test_limits_05_to_08_a_query_has_at_most_1024_bytes(text: str, expected: str) -> None:
    assert refusal(text) == expected


@pytest.mark.parametrize(("count", "expected"), [(64, "ok"), (65, "too_many_terms")])
@pytest.mark.parametrize("name", ["seed", "search"])
def test_limits_09_a_query_has_at_most_64_different_words(
    count: int, expected: str, name: str
) -> None:
    text = " ".join(f"w{number}" for number in range(count))
    code = "ok"
    try:
        check_query(text + " w1 w1", 8, terms_of=analyzer(name))
    except InvalidQuery as error:
        code = error.code
    assert code == expected


@pytest.mark.parametrize("text", ["", "   ", "，。！", "\ud800"])
def test_limits_11_a_query_without_a_word_is_empty(text: str) -> None:
    assert refusal(text) == "empty_query"


def test_limits_14_names_of_modes_are_case_sensitive() -> None:
    assert refusal(match="ALL") == "invalid_match_mode"
    assert refusal(mode="Keyword") == "invalid_mode"
    assert refusal(mode="bm25") == "invalid_mode"


def test_limits_15_an_edge_may_speak_its_own_names() -> None:
    with pytest.raises(InvalidQuery):
        check_query("退款", 8, "keyword", "phrase", modes=("bm25", "vector"))
    check_query("退款", 8, "bm25", "phrase", modes=("bm25", "vector"))


def test_mode_recent_needs_no_text() -> None:
    assert refusal("", mode="recent") == "ok"


def test_a_short_text_is_not_shortened() -> None:
    assert shorten_query("what's my name?") == "what's my name?"


def test_a_long_text_keeps_its_beginning_and_its_end() -> None:
    text = "First this. " + "padding " * 500 + "So where is the key?"
    short = shorten_query(text)
    assert short.startswith("First this.")
    assert short.endswith("So where is the key?")


@given(st.text(max_size=3000) | st.lists(st.integers(0, 10**6), max_size=300).map(str))
@settings(max_examples=60, deadline=None, database=None)
def test_a_shortened_text_is_always_within_the_bounds(text: str) -> None:
    short = shorten_query(text)
    assert len(short.encode("utf-8", "surrogatepass")) <= MAX_QUERY_BYTES
    assert len(analyzer("search").words(short)) <= MAX_TERMS
