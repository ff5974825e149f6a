"""The runner of behaviour cases, on small files of our own."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from memory.cases.registry import agrees

PASSES = {"id": "t1", "area": "tokens", "input": {"text": "aaaaa"}, "expected": 2}
BEATEN = {**PASSES, "id": "t2", "verdict": "beat", "expected": 99, "ours": {"min": 1, "max": 3}}
FAILS = {**PASSES, "id": "t3", "expected": 40}
UNKNOWN = {"id": "x1", "area": "telepathy", "input": {}, "expected": {}}
CRASHES = {"id": "b1", "area": "budget", "input": {}, "expected": []}
OWNER = {"id": "o1", "area": "owner", "input": {"apiKeyInfo": {"id": " k "}}, "expected": "k"}
BUDGET = {
    "id": "b2",
    "area": "budget",
    "input": {"tokens": [5, 20, 5], "maxTokens": 10},
    "expected": [0, 2],
}
RRF = {
    "id": "r1",
    "area": "rrf",
    "input": {"k": 60, "vec_rank": 1, "fts_rank": 3},
    "expected": 0.032266,
}


def _run(path: Path, document: Any) -> tuple[list[str], int]:
    path.write_text(json.dumps(document), encoding="utf-8")
    said = io.StringIO()
    try:
        call_command("cases", str(path), stdout=said)
    except SystemExit as stop:
        return said.getvalue().splitlines(), int(str(stop.code))
    return said.getvalue().splitlines(), 0


def test_every_area_has_a_line_and_the_last_one_counts(tmp_path: Path) -> None:
    lines, code = _run(tmp_path / "cases.json", [PASSES, BEATEN, UNKNOWN, OWNER, BUDGET, RRF])
    assert lines == [
        "tokens 2/2",
        "telepathy not covered",
        "owner 1/1",
        "budget 1/1",
        "rrf 1/1",
        "5 passed, 0 failed",
    ]
    assert code == 0


def test_a_failure_is_told_with_both_values_and_the_command_fails(tmp_path: Path) -> None:
    lines, code = _run(tmp_path / "cases.json", [PASSES, FAILS])
    assert lines == ["FAILED t3: wanted 40, got 2", "tokens 1/2", "1 passed, 1 failed"]
    assert code == 1


def test_an_adapter_that_crashes_fails_its_case_only(tmp_path: Path) -> None:
    lines, code = _run(tmp_path / "cases.json", [CRASHES, PASSES])
    assert lines[0].startswith('FAILED b1: wanted [], got "raised KeyError')
    assert lines[-1] == "1 passed, 1 failed"
    assert code == 1


def test_cases_may_lie_under_a_name(tmp_path: Path) -> None:
    lines, code = _run(tmp_path / "cases.json", {"cases": [PASSES], "basis": "ours"})
    assert (lines[-1], code) == ("1 passed, 0 failed", 0)


@pytest.mark.parametrize("document", ["text", [1], [{"id": "x"}], {"other": []}], ids=str)
def test_what_is_no_file_of_cases_is_said_in_one_sentence(tmp_path: Path, document: Any) -> None:
    with pytest.raises(CommandError, match="not a file of cases"):
        _run(tmp_path / "cases.json", document)


def test_a_file_that_is_missing_is_said_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="not a file of cases"):
        call_command("cases", str(tmp_path / "missing.json"))


@pytest.mark.parametrize(
    ("want", "got", "same"),
    [
        (1, 1.0000001, True),
        (1, 1.1, False),
        (True, 1, False),
        (None, None, True),
        (None, 0, False),
        ({"a": 1}, {"a": 1, "b": 2}, True),
        ({"a": 1}, {"b": 2}, False),
        ({}, {"a": 1}, False),
        ({"min": 1, "max": 3}, 2, True),
        ({"min": 1, "max": 3}, 4, False),
        ([1, 2], [1, 2], True),
        ([1, 2], [2, 1], False),
        ([1], [1, 2], False),
        ("a", "a", True),
        ("error code (why)", "error code (in other words)", True),
        ("error code (why)", "error other (why)", False),
        ("text (a)", "text (b)", False),
        (float("inf"), 1, False),
    ],
)
def test_answers_agree_within_the_rules(want: Any, got: Any, same: bool) -> None:
    assert agrees(want, got) is same
