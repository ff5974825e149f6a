"""Every requirement of vaults has its row, and every test that a row names exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from django.conf import settings

ROOT = Path(settings.BASE_DIR)
ROW = re.compile(r"^\| R(\d+) \| (.+?) \| (.+) \|$", re.MULTILINE)
NOT_BUILT = "*not built*"
COUNT = 115


def rows() -> dict[int, str]:
    text = (ROOT / "docs/vault-requirements.md").read_text(encoding="utf-8")
    return {int(number): tests for number, _what, tests in ROW.findall(text)}


def names() -> set[str]:
    """The tests that the suite runs: functions of test files at the top of the module."""
    found: set[str] = set()
    for package in ("engine", "memory", "memstudio"):
        for path in (ROOT / package).rglob("test_*.py"):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            found |= {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    return found


def test_every_requirement_has_a_row_with_a_test_or_says_that_it_is_not_built() -> None:
    table = rows()
    assert sorted(table) == list(range(1, COUNT + 1))
    without = [number for number, tests in table.items() if "`test_" not in tests]
    assert [number for number in without if NOT_BUILT not in table[number]] == []


def test_every_test_that_a_row_names_exists() -> None:
    there = names()
    named = {name for tests in rows().values() for name in re.findall(r"`(test_\w+)`", tests)}
    assert len(named) > 80
    assert sorted(named - there) == []
