"""What would be said with every batch of spans is said now and then."""

from __future__ import annotations

import logging

from memstudio.log import Seldom


def test_one_line_in_five_minutes_comes_through() -> None:
    moments = [0.0, 10.0, 299.0, 301.0, 302.0, 700.0]
    clock = iter(moments)
    seldom = Seldom(clock=lambda: next(clock))
    record = logging.LogRecord("a", logging.ERROR, "a.py", 1, "away", None, None)
    assert [seldom.filter(record) for _moment in moments] == [
        True,
        False,
        False,
        True,
        False,
        True,
    ]
