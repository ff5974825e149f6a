"""Runs a file and prints passed/total for each area, every failure, and the totals."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Importing them registers their adapters.
from memory.cases import (  # noqa: F401
    chat_areas,
    engine_areas,
    extraction_areas,
    install_areas,
    model_areas,
    net_areas,
    qdrant_areas,
    service_areas,
    vault_areas,
)
from memory.cases.registry import CaseFile, adapter_for, agrees, wanted

Say = Callable[[str], object]


def read(path: Path) -> CaseFile:
    """The cases of a file. Raises ``ValueError`` when it is not a list of cases."""
    document = json.loads(path.read_text(encoding="utf-8"))
    cases = document["cases"] if isinstance(document, dict) else document
    if not all(isinstance(case, dict) and {"id", "area", "input"} <= set(case) for case in cases):
        raise ValueError("not a list of cases")
    return CaseFile(cases)


def run(file: CaseFile, say: Say) -> int:
    """Run every case that has an adapter; how many failed."""
    passed: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for case in file.cases:
        area = case["area"]
        total[area] += 1
        adapter = adapter_for(area)
        if adapter is None:
            continue
        want = wanted(case)
        got = _answer(adapter, case, file)
        if agrees(want, got):
            passed[area] += 1
        else:
            say(f"FAILED {case['id']}: wanted {_short(want)}, got {_short(got)}")
    covered = [area for area in total if adapter_for(area) is not None]
    for area in total:
        say(f"{area} {passed[area]}/{total[area]}" if area in covered else f"{area} not covered")
    failed = sum(total[area] - passed[area] for area in covered)
    say(f"{sum(passed.values())} passed, {failed} failed")
    return failed


def _answer(adapter: Any, case: dict[str, Any], file: CaseFile) -> Any:
    try:
        return adapter(case, file)
    except Exception as error:
        return f"raised {type(error).__name__}: {error}"


def _short(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)[:300]
