"""What a search may cost: the ratios that a test holds later versions to.

``make bench ARGS=record`` measures them again, after a change that is meant to change them.
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Final

from benchmarks.speed import main
from benchmarks.speed.data import Plan

FILE: Final = Path(__file__).with_name("recorded.json")
GUARDED: Final = ("keyword_over_fts5", "vector_over_numpy", "hybrid_over_legs", "import_over_raw")
PASSAGES: Final = 1_500
QUESTIONS: Final = 120
RUNS: Final = 3


def plan() -> Plan:
    """The size that is recorded and tested: small, so that it takes seconds."""
    return main.brief_plan(PASSAGES, questions=QUESTIONS)


def recorded() -> dict[str, float]:
    """The ratios of processor time as last recorded."""
    found: dict[str, float] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def record() -> None:
    """Measure a few times and keep the medians."""
    runs = [main.measure(plan())["cpu_ratios"] for _ in range(RUNS)]
    found = {name: round(statistics.median(run[name] for run in runs), 2) for name in GUARDED}
    FILE.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(found))
