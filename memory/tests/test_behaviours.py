"""``manage.py behaviours`` tells which described cases nothing holds."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from memory.cases.behaviours import told_ids


def _run(path: Path, ids: list[str], *options: str) -> tuple[str, bool]:
    cases = [{"id": name, "area": name.rpartition("-")[0], "input": {}} for name in ids]
    path.write_text(json.dumps(cases), encoding="utf-8")
    printed = StringIO()
    try:
        call_command("behaviours", path, *options, stdout=printed)
    except SystemExit as ended:
        return printed.getvalue(), bool(ended.code)
    return printed.getvalue(), False


def test_a_test_a_parameter_a_line_and_an_adapter_hold_a_case(tmp_path: Path) -> None:
    ids = ["rest-05", "rest-14", "store_cache-01", "retrieval_config-04", "budget-01"]
    printed, is_missing = _run(tmp_path / "cases.json", ids, "--list")
    assert not is_missing
    assert "rest 2/2" in printed
    assert "test_api_memories.py::test_rest_05_a_change_answers" in printed
    assert "test_api_settings.py::rest_14" in printed
    assert "retrieval_config-04: docs/differences.md" in printed
    assert "make cases" in printed


def test_a_case_that_nothing_holds_fails_by_name(tmp_path: Path) -> None:
    printed, is_missing = _run(tmp_path / "cases.json", ["rest-05", "rest-0", "nowhere-01"])
    assert is_missing
    assert "MISSING rest-0\n" in printed
    assert "MISSING nowhere-01\n" in printed
    assert "1 held, 2 missing" in printed


def test_a_range_names_every_case_in_it() -> None:
    assert told_ids("rest-08 to rest-11, store-04") == {
        *("rest-08", "rest-09", "rest-10", "rest-11"),
        "store-04",
    }


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cases.json").write_text('{"cases": [1]}', encoding="utf-8")
    with pytest.raises(CommandError, match="not a file of cases"):
        call_command("behaviours", tmp_path / "cases.json")
