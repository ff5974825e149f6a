"""Precision and recall over the frozen labelled turns, set by set, printed by every run.

*a* is by the author of the rules and *b* by someone who had not seen one. The rules were developed
on *c*; nobody who writes rules has looked into *d*: its figures are those for new text.
"""

from __future__ import annotations

from typing import Final

import pytest

from engine.tests.extraction_score import Score, score, turns

PRECISION: Final = 0.95
RECALL: Final = 0.75
HELD_OUT: Final = {"en": (0.75, 0.33), "zh": (0.64, 0.36), "ja": (0.77, 0.45)}
"""A little under what *d* was measured at: far from the aims, and not to get worse."""
LANGUAGES: Final = ("en", "zh", "ja")


@pytest.mark.parametrize("sets", ["ab", "c"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_extraction_reaches_its_aims_where_it_was_developed(language: str, sets: str) -> None:
    figures = score(turns(language, sets))
    assert figures.precision >= PRECISION
    assert figures.recall >= RECALL


@pytest.mark.parametrize("language", LANGUAGES)
def test_extraction_of_turns_nobody_looked_at_gets_no_worse(
    language: str, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = {name: score(turns(language, name)) for name in "abcd"}
    with capsys.disabled():
        print(f"\nextraction {language}: ours {_said(figures['a'])}", end="")  # noqa: T201
        print(f"; b, by another {_said(figures['b'])}", end="")  # noqa: T201
        print(f"; c, developed on {_said(figures['c'])}", end="")  # noqa: T201
        print(f"; d, never looked at {_said(figures['d'])}")  # noqa: T201
    precision, recall = HELD_OUT[language]
    assert figures["d"].precision >= precision
    assert figures["d"].recall >= recall


def _said(figures: Score) -> str:
    return f"precision {figures.precision:.3f} recall {figures.recall:.3f}"
