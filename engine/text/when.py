"""Which span of time a question speaks of: "last week", 昨天, 先週, 2023-05-08, 2023年5月8日.

Relative words are resolved against a reference moment. Weeks begin on Monday. Only words that can
hardly mean anything else are read; a query may name one span, the first that is found.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final

from dateutil.relativedelta import relativedelta

from engine.text.normalize import fold

_MONTHS: Final = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_MONTH = "|".join(f"{name}|{name[:3]}" for name in _MONTHS)
_WEEKDAYS: Final = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_HAN_WEEKDAYS: Final = {"一": 0, "二": 1, "三": 2, "四": 3, "五": 4, "六": 5, "日": 6, "天": 6} | {
    "月": 0,
    "火": 1,
    "水": 2,
    "木": 3,
    "金": 4,
    "土": 5,
}
_NUMBERS: Final = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5} | {
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
    "couple of": 2,
    "a couple of": 2,
    "few": 3,
    "a few": 3,
}
_HAN_DIGITS: Final = {"两": 2, "兩": 2} | {d: n for n, d in enumerate("〇一二三四五六七八九")}
_COUNT = r"(\d{1,3}|an?|one|two|three|four|five|six|seven|eight|nine|ten|(?:a )?(?:few|couple of))"
# Not the end of a longer number, such as a year.
_HAN_COUNT = r"(?<![\d〇零一二两兩三四五六七八九十百千万])(\d{1,3}|[一二两兩三四五六七八九十]{1,3})"
_DAY, _WEEK = timedelta(days=1), timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Span:
    """From ``start_ms`` to before ``end_ms``, milliseconds since the epoch."""

    start_ms: int
    end_ms: int


Days = tuple[date, date]
"""First day, and the day after the last."""

Rule = tuple[re.Pattern[str], Callable[[re.Match[str], date], Days | None]]


def span_of(text: str, *, now_ms: int) -> Span | None:
    """The span of time a text names, in UTC; None when it names none."""
    today = datetime.fromtimestamp(now_ms / 1000, UTC).date()
    folded = fold(text)
    for pattern, days_of in _RULES:
        found = pattern.search(folded)
        if found is None:
            continue
        try:
            days = days_of(found, today)
        except (ValueError, OverflowError):  # no calendar has it, or it is no one number
            continue
        if days is not None:
            return Span(_ms(days[0]), _ms(days[1]))
    return None


def _ms(day: date) -> int:
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp() * 1000)


def _number(text: str) -> int:
    """The count of a rule. Raises ``ValueError`` for numerals in a row (两三, "two or three")."""
    if text.isdigit():
        return int(text)
    if text in _NUMBERS:
        return _NUMBERS[text]
    tens, has_ten, ones = text.rpartition("十")
    if not has_ten:
        return _han_digit(text)
    return (_han_digit(tens) if tens else 1) * 10 + (_han_digit(ones) if ones else 0)


def _han_digit(text: str) -> int:
    if text not in _HAN_DIGITS:
        raise ValueError("no single numeral")
    return _HAN_DIGITS[text]


def _day(ago: int) -> Callable[[re.Match[str], date], Days]:
    return lambda _found, today: (today - ago * _DAY, today - (ago - 1) * _DAY)


def _week(ago: int) -> Callable[[re.Match[str], date], Days]:
    return lambda _found, today: _week_of(today - ago * _WEEK)


def _month(ago: int) -> Callable[[re.Match[str], date], Days]:
    return lambda _found, today: _month_of(today - relativedelta(months=ago))


def _year(ago: int) -> Callable[[re.Match[str], date], Days]:
    return lambda _found, today: _year_of(today.year - ago)


def _week_of(day: date) -> Days:
    first = day - day.weekday() * _DAY
    return first, first + _WEEK


def _month_of(day: date) -> Days:
    first = day.replace(day=1)
    return first, first + relativedelta(months=1)


def _year_of(year: int) -> Days:
    return date(year, 1, 1), date(year + 1, 1, 1)


def _ago(found: re.Match[str], today: date) -> Days | None:
    """The day, week, month or year so many ago."""
    count, unit = _number(found[1]), found[2]
    if unit[0] in "d天日":
        return today - count * _DAY, today - (count - 1) * _DAY
    if unit[0] in "w周週星":
        # "Two weeks ago" is rarely meant to the day: the week around it.
        middle = today - count * _WEEK
        return middle - 3 * _DAY, middle + 4 * _DAY
    if unit[0] in "y年":
        return _year_of(today.year - count)
    return _month_of(today - relativedelta(months=count))


def _past(found: re.Match[str], today: date) -> Days | None:
    """The last so many days, weeks, months or years, up to now."""
    count, unit = _number(found[1]), found[2]
    if unit[0] in "d天日":
        first = today - count * _DAY
    elif unit[0] in "w周週星":
        first = today - count * _WEEK
    else:
        by_year = unit[0] in "y年"
        step = relativedelta(years=count) if by_year else relativedelta(months=count)
        first = today - step
    return first, today + _DAY


def _weekday(found: re.Match[str], today: date) -> Days:
    day = today - ((today.weekday() - _WEEKDAYS.index(found[1]) - 1) % 7 + 1) * _DAY
    return day, day + _DAY


def _han_weekday(found: re.Match[str], today: date) -> Days:
    first, _end = _week_of(today - _WEEK)
    day = first + _HAN_WEEKDAYS[found[1]] * _DAY
    return day, day + _DAY


def _date(year: int, month: int, day: int | None) -> Days:
    if day is None:
        return _month_of(date(year, month, 1))
    return date(year, month, day), date(year, month, day) + _DAY


def _numeric(found: re.Match[str], _today: date) -> Days:
    return _date(int(found[1]), int(found[2]), int(found[3]) if found[3] else None)


def _day_month(found: re.Match[str], _today: date) -> Days:
    return _date(int(found[3]), _month_number(found[2]), int(found[1]))


def _month_day(found: re.Match[str], _today: date) -> Days:
    return _date(int(found[3]), _month_number(found[1]), int(found[2]) if found[2] else None)


def _in_month(found: re.Match[str], today: date) -> Days:
    """The latest such month that has begun."""
    month = _month_number(found[1])
    return _date(today.year - (month > today.month), month, None)


def _month_and_day(found: re.Match[str], today: date) -> Days:
    month, day = int(found[1]), int(found[2])
    return _date(today.year - ((month, day) > (today.month, today.day)), month, day)


def _in_year(found: re.Match[str], _today: date) -> Days:
    return _year_of(int(found[1]))


def _month_number(name: str) -> int:
    return next(i for i, full in enumerate(_MONTHS, 1) if full.startswith(name[:3]))


def _rule(pattern: str, days_of: Callable[[re.Match[str], date], Days | None]) -> Rule:
    return re.compile(pattern), days_of


_RULES: Final[tuple[Rule, ...]] = (
    _rule(r"(?<!\d)((?:19|20)\d\d)[-/.](\d{1,2})[-/.](\d{1,2})(?!\d)", _numeric),
    _rule(r"(?<!\d)((?:19|20)\d\d)\s?年\s?(\d{1,2})\s?月(?:\s?(\d{1,2})\s?[日号號])?", _numeric),
    _rule(
        rf"\b(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? ({_MONTH})\b\.?,? ((?:19|20)\d\d)\b", _day_month
    ),
    _rule(
        rf"(?<!\d )\b({_MONTH})\b\.?(?: (\d{{1,2}})(?:st|nd|rd|th)?)?,? ((?:19|20)\d\d)\b",
        _month_day,
    ),
    _rule(r"\bday before yesterday\b|(?<!大)前天|一昨日|おととい|おとつい", _day(2)),
    _rule(r"\byesterday\b|\blast night\b|昨天|昨晚|昨日|昨夜|きのう", _day(1)),
    _rule(rf"\b{_COUNT} (days?|weeks?|months?|years?) ago\b", _ago),
    _rule(rf"{_HAN_COUNT}\s?[个個]?(天|周|週|星期|月|年)[之以]?前", _ago),
    _rule(rf"{_HAN_COUNT}\s?(日|週間|[かヶカケ箇]月|年)前", _ago),
    _rule(rf"\b(?:last|past) {_COUNT} (days|weeks|months|years)\b", _past),
    _rule(rf"(?:最近|过去|過去|近)(?:的|の)?{_HAN_COUNT}\s?[个個]?(天|周|週間|週|月|年|日)", _past),
    _rule(rf"\blast ({'|'.join(_WEEKDAYS)})\b", _weekday),
    _rule(r"上(?:个|個)?(?:周|週|星期|礼拜|禮拜)([一二三四五六日天])", _han_weekday),
    _rule(r"先週の([月火水木金土日])曜", _han_weekday),
    _rule(r"上上(?:个|個)?(?:周|週|星期)|先々週|先先週|\bweek before last\b", _week(2)),
    _rule(r"\blast week\b|上(?:个|個)?(?:周|週|星期|礼拜|禮拜)|先週", _week(1)),
    _rule(r"\bthis week\b|(?:本|这|這)(?:个|個)?(?:周|週|星期)|今週", _week(0)),
    _rule(r"上上(?:个|個)?月|先々月|先先月|\bmonth before last\b", _month(2)),
    _rule(r"\blast month\b|上(?:个|個)?月|先月", _month(1)),
    _rule(r"\bthis month\b|(?:本|这个|這個)月|今月", _month(0)),
    _rule(r"前年|一昨年|おととし|\byear before last\b", _year(2)),
    _rule(r"\blast year\b|去年|昨年", _year(1)),
    _rule(r"\bthis year\b|今年", _year(0)),
    _rule(r"\btoday\b|\btonight\b|今天|今晚|今日|本日", _day(0)),
    _rule(r"(?<!\d)(\d{1,2})\s?月\s?(\d{1,2})\s?[日号號]", _month_and_day),
    _rule(rf"\b(?:in|during|since|of) ({_MONTH})\b(?! \d)", _in_month),
    _rule(r"\b(?:in|during) ((?:19|20)\d\d)\b", _in_year),
    _rule(r"(?<!\d)((?:19|20)\d\d)\s?年", _in_year),
)
