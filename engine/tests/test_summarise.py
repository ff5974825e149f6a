from __future__ import annotations

import pytest

from engine.summarise import Row, Shortened, summarise_by_age, summarise_to_budget
from engine.text.tokens import estimate_tokens
from engine.types import MemoryType


def rows(*contents: str) -> list[Row]:
    return [
        Row(number, MemoryType.FACTUAL, f"key:{number}", content)
        for number, content in enumerate(contents, 1)
    ]


def test_summarise_session_01_nothing_gives_nothing() -> None:
    summary = summarise_to_budget([], max_tokens=100)
    assert (summary.original_count, summary.summarized_count, summary.tokens_saved) == (0, 0, 0)


def test_summarise_session_02_the_newest_fit_and_the_rest_shrink() -> None:
    summary = summarise_to_budget(
        rows("Up. Down. Left. Right.", "Ash. Birch. Cedar. Dogwood."), max_tokens=8
    )
    assert summary.kept_ids == (1,)
    assert summary.shortened == (Shortened(2, "Ash. Birch. Cedar.", 2),)
    assert (summary.original_count, summary.summarized_count, summary.tokens_saved) == (2, 1, 2)


def test_summarise_session_03_a_short_text_is_counted_though_it_stays() -> None:
    summary = summarise_to_budget(rows("Uno. Dos. Tres."), max_tokens=0)
    assert summary.shortened == (Shortened(1, "Uno. Dos. Tres.", 0),)
    assert (summary.summarized_count, summary.tokens_saved) == (1, 0)


def test_an_older_memory_may_fit_where_a_newer_one_did_not() -> None:
    summary = summarise_to_budget(rows("a" * 40, "b" * 400, "c" * 40), max_tokens=20)
    assert summary.kept_ids == (1, 3)


def test_summarise_older_05_the_cost_before_is_the_sum_of_the_memories() -> None:
    assert summarise_by_age(rows("aaaa", "bbbbbbbb"), days=30).total_tokens == 3


def test_one_line_a_memory_with_its_first_sentences() -> None:
    summary = summarise_by_age(rows("One. Two.\nThree. Four.", "Tea."), days=30)
    assert [text.text for text in summary.texts] == [
        "Summary of 2 memories older than 30 days:\n"
        "[factual] key:1: One. Two. Three.\n"
        "[factual] key:2: Tea."
    ]
    assert summary.texts[0].row_ids == (1, 2)


@pytest.mark.parametrize(
    ("content", "header"),
    [
        ("I like tea", "Summary of 1 memory older than 1 day:"),
        ("我喜欢喝咖啡", "1 条早于 1 天的记忆摘要："),
        ("コーヒーが好きです", "1日より前の記憶1件の要約："),
    ],
)
def test_summarise_older_07_the_header_is_in_the_language_of_the_memories(
    content: str, header: str
) -> None:
    assert summarise_by_age(rows(content), days=1).texts[0].text.startswith(header)


@pytest.mark.parametrize("content", ["word " * 300, "字" * 500, "🚀" * 300, "short"])
@pytest.mark.parametrize("max_tokens", [60, 200, 1000])
def test_no_text_exceeds_the_cap_and_every_memory_is_in_one(content: str, max_tokens: int) -> None:
    summary = summarise_by_age(rows(*[content] * 40), days=30, max_tokens=max_tokens)
    assert max(estimate_tokens(text.text) for text in summary.texts) <= max_tokens
    assert [row_id for text in summary.texts for row_id in text.row_ids] == list(range(1, 41))
    assert all(text.tokens == estimate_tokens(text.text) for text in summary.texts)


def test_savings_are_never_negative() -> None:
    summary = summarise_by_age(rows("a"), days=30)
    assert (summary.total_tokens, summary.tokens_saved) == (1, 0)
    assert summarise_by_age([], days=30).texts == ()
