"""Precision and recall over the frozen labelled turns, printed by every run."""

from __future__ import annotations

import pytest

from engine.tests.extraction_score import Score, score, turns

PRECISION = 0.95
RECALL = 0.75


@pytest.mark.parametrize("language", ["en", "zh", "ja"])
def test_extraction_reaches_its_aims(language: str, capsys: pytest.CaptureFixture[str]) -> None:
    halves = {half: score(turns(language, half)) for half in "ab"}
    both = sum(halves.values(), Score(0, 0, 0))
    with capsys.disabled():
        print(f"\nextraction {language}: {_said(both)}; ours {_said(halves['a'])}", end="")  # noqa: T201
        print(f"; by another {_said(halves['b'])}")  # noqa: T201
    assert both.precision >= PRECISION
    assert both.recall >= RECALL


def _said(figures: Score) -> str:
    return f"precision {figures.precision:.3f} recall {figures.recall:.3f}"
