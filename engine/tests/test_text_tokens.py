from __future__ import annotations

import pytest

from engine.text.tokens import estimate_tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("a", 1), ("abcd", 1), ("hello", 2), ("b" * 100, 25), ("b" * 101, 26)],
)
def test_tokens_01_to_12_ascii_is_four_characters_a_token_rounded_up(
    text: str, tokens: int
) -> None:
    assert estimate_tokens(text) == tokens


@pytest.mark.parametrize("value", [42, None, ["text"], b"text"])
def test_tokens_08_anything_but_a_string_costs_nothing(value: object) -> None:
    assert estimate_tokens(value) == 0


def test_tokens_13_14_chinese_counts_by_character() -> None:
    assert 3 <= estimate_tokens("你好世界") <= 6
    assert 4 <= estimate_tokens("你好世界吗") <= 8


@pytest.mark.parametrize(
    ("text", "o200k"),
    [
        ("ありがとうございます、コーヒーを飲みました。", 14),
        ("안녕하세요 저는 커피를 좋아합니다", 8),
        ("привет мир, как дела сегодня", 7),
        ("🚀🚀🎉", 6),
        ("café déjà vu naïve über straße", 9),
    ],
)
def test_other_scripts_cost_more_than_a_quarter_and_no_wild_sum(text: str, o200k: int) -> None:
    assert 0.8 * o200k <= estimate_tokens(text) <= 2 * o200k


def test_a_mixed_text_costs_what_its_parts_cost() -> None:
    whole = estimate_tokens("hello 你好世界 🚀")
    assert abs(whole - estimate_tokens("hello  ") - 4 - 2) <= 1
