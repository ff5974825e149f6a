from __future__ import annotations

import pytest

from engine.text.match import Matcher
from engine.text.tokenize import analyzer
from engine.types import Match


def accepts(query: str, match: Match, *fields: str, name: str = "search") -> bool:
    return Matcher(query, match, analyzer(name)).accepts(fields)


def test_any_accepts_everything() -> None:
    assert accepts("coffee", Match.ANY, "tea")


@pytest.mark.parametrize("name", ["seed", "search"])
def test_all_wants_chinese_as_any_part_and_latin_as_whole_words(name: str) -> None:
    assert accepts("咖啡 tea", Match.ALL, "我喜欢喝咖啡", "tea", name=name)
    assert not accepts("咖啡 tea", Match.ALL, "我喜欢喝咖啡", "team", name=name)
    assert not accepts("红茶 tea", Match.ALL, "我喜欢喝咖啡", "tea", name=name)


def test_all_follows_the_analyzer_in_forms_of_a_word() -> None:
    assert accepts("refund", Match.ALL, "Refunds are issued")
    assert not accepts("refund", Match.ALL, "Refunds are issued", name="seed")


@pytest.mark.parametrize(
    ("phrase", "text", "expected"),
    [
        ("rate limits", "REST API Rate\n limits", True),
        ("limits rate", "rate limits", False),
        ("rate limit", "rate limits", False),
        ("api", "the API版本", True),
        ("api", "apis", False),
        ("caf", "café", False),
        ("7天", "订单7天内", True),
        ("7天", "17天内", False),
        ("a.b", "a.b and axb", True),
        ("a.b", "axb", False),
        ("c++", "c++11", True),
    ],
)
def test_a_phrase_stands_in_one_field_with_word_edges(
    phrase: str, text: str, expected: bool
) -> None:
    assert accepts(phrase, Match.PHRASE, "", text, "") is expected


def test_a_phrase_does_not_run_across_fields() -> None:
    assert not accepts("rate limits", Match.PHRASE, "rate", "limits")
