"""Spans of time in questions, in three languages."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from engine.text.when import span_of

NOW = datetime(2026, 11, 30, 15, 30, tzinfo=UTC)  # a Monday


def days(text: str) -> tuple[str, str] | None:
    found = span_of(text, now_ms=int(NOW.timestamp() * 1000))
    if found is None:
        return None
    ends = [datetime.fromtimestamp(ms / 1000, UTC) for ms in (found.start_ms, found.end_ms)]
    assert all(end.time().isoformat() == "00:00:00" for end in ends)
    return ends[0].date().isoformat(), ends[1].date().isoformat()


@pytest.mark.parametrize(
    ("text", "first", "after"),
    [
        ("What did I say yesterday?", "2026-11-29", "2026-11-30"),
        ("昨天说了什么", "2026-11-29", "2026-11-30"),
        ("昨日の会議", "2026-11-29", "2026-11-30"),
        ("前天的会议", "2026-11-28", "2026-11-29"),
        ("一昨日の件", "2026-11-28", "2026-11-29"),
        ("what was decided LAST WEEK", "2026-11-23", "2026-11-30"),
        ("上周的计划", "2026-11-23", "2026-11-30"),
        ("上個星期的計畫", "2026-11-23", "2026-11-30"),
        ("先週の予定", "2026-11-23", "2026-11-30"),
        ("先々週の予定", "2026-11-16", "2026-11-23"),
        ("今週やること", "2026-11-30", "2026-12-07"),
        ("last month's bill", "2026-10-01", "2026-11-01"),
        ("上个月的账单", "2026-10-01", "2026-11-01"),
        ("先月の請求", "2026-10-01", "2026-11-01"),
        ("去年买的", "2025-01-01", "2026-01-01"),
        ("three days ago", "2026-11-27", "2026-11-28"),
        ("3天前说的", "2026-11-27", "2026-11-28"),
        ("三日前に話した", "2026-11-27", "2026-11-28"),
        ("十二天前", "2026-11-18", "2026-11-19"),
        ("两个月前", "2026-09-01", "2026-10-01"),
        ("2ヶ月前", "2026-09-01", "2026-10-01"),
        ("a week ago", "2026-11-20", "2026-11-27"),
        ("in the past 3 days", "2026-11-27", "2026-12-01"),
        ("最近三天", "2026-11-27", "2026-12-01"),
        ("last Friday", "2026-11-27", "2026-11-28"),
        ("last Monday", "2026-11-23", "2026-11-24"),
        ("上周三的会", "2026-11-25", "2026-11-26"),
        ("先週の水曜日", "2026-11-25", "2026-11-26"),
        ("on 8 May, 2023", "2023-05-08", "2023-05-09"),
        ("on May 8th 2023", "2023-05-08", "2023-05-09"),
        ("in May 2023", "2023-05-01", "2023-06-01"),
        ("on 2023-05-08", "2023-05-08", "2023-05-09"),
        ("2023年5月8日の会議", "2023-05-08", "2023-05-09"),
        ("2023年5月的会议", "2023-05-01", "2023-06-01"),
        ("5月8日に", "2026-05-08", "2026-05-09"),
        ("12月24日", "2025-12-24", "2025-12-25"),
        ("trips in December", "2025-12-01", "2026-01-01"),
        ("what happened in 2022", "2022-01-01", "2023-01-01"),
        ("２０２２年に", "2022-01-01", "2023-01-01"),
        ("2023年前的事", "2023-01-01", "2024-01-01"),
        ("999 years ago", "1027-01-01", "1028-01-01"),
    ],
)
def test_a_span_is_read(text: str, first: str, after: str) -> None:
    assert days(text) == (first, after)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "may I ask what you march for?",
        "version 2023.45.99 of it",
        "31 February 2023",
        "who lives in Berlin",
        "今天气如何".replace("今天", "天"),
        "port 2022 is open",
        "两三天前我说了什么",
        "三五年前",
        "十十年前",
        "一百二十天前",
        "2023-13-45",
        "9" * 5000 + " days ago",
        "9" * 5000 + "年前",
    ],
)
def test_what_names_no_time_gives_none(text: str) -> None:
    assert days(text) is None


def test_a_span_crosses_the_turn_of_the_year() -> None:
    start = datetime(2026, 1, 2, tzinfo=UTC)
    found = span_of("last month", now_ms=int(start.timestamp() * 1000))
    assert found is not None
    assert datetime.fromtimestamp(found.start_ms / 1000, UTC).date() == date(2025, 12, 1)
