"""Made-up memories in three languages; every one is different."""

from __future__ import annotations

from typing import Any

PEOPLE = ("Ana", "Ben", "Chloé", "Dmitri", "陈静", "佐藤", "Noor", "Paul", "Keiko", "刘洋")
THINGS = (
    "the staging database", "green tea", "Rust", "the quarterly report", "a standing desk",
    "trail running", "the Kyoto office", "dark mode", "PostgreSQL", "the release checklist",
    "vegetarian lunch", "noise-cancelling headphones", "the payment service", "C++", "chess",
)  # fmt: skip
FRAMES = (
    "{who} prefers {what} on {day} and asked for it again in week {n}.",
    "{who} decided to move {what} to {day}; ticket {n} has the reasons.",
    "{who} usually reviews {what} before {day}, usually about {n} minutes.",
    "{who}在{day}提到第{n}次：以后都用{what}，不要再改回去。",
    "{who}さんは{day}に{what}を使うと{n}回目の会議で決めた。",
)
DAYS = ("Monday", "Tuesday", "星期三", "木曜日", "Friday", "the weekend", "月末")
TYPES = ("factual", "episodic", "procedural", "semantic")


def memories(count: int) -> list[dict[str, Any]]:
    """``count`` records in the import format."""
    return [_memory(place) for place in range(count)]


def _memory(place: int) -> dict[str, Any]:
    who, what = PEOPLE[place % len(PEOPLE)], THINGS[place // 3 % len(THINGS)]
    frame, day = FRAMES[place % len(FRAMES)], DAYS[place // 7 % len(DAYS)]
    return {
        "key": f"note:{place}",
        "content": frame.format(who=who, what=what, day=day, n=place),
        "type": TYPES[place % len(TYPES)],
        "sessionId": f"session-{place // 50}",
        "metadata": {"tags": [what]},
    }
