"""Every requirement of vaults has its row; every test that a row names exists, and runs."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

from memory.tests.named_tests import named_in

ROOT = Path(settings.BASE_DIR)
ROW = re.compile(r"^\| R(\d+) \| (.+?) \| (.+) \|$", re.MULTILINE)
COUNT = 115


def rows() -> list[tuple[int, str]]:
    text = (ROOT / "docs/vault-requirements.md").read_text(encoding="utf-8")
    return [(int(number), tests) for number, _what, tests in ROW.findall(text)]


def names() -> set[str]:
    """The tests that the suite runs: functions of test files at the top of the module."""
    found: set[str] = set()
    for package in ("engine", "memory", "memstudio"):
        for path in (ROOT / package).rglob("test_*.py"):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            found |= {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    return found


def test_every_requirement_has_one_row_with_a_test() -> None:
    table = rows()
    assert [number for number, _tests in table] == list(range(1, COUNT + 1))
    assert [number for number, tests in table if "`test_" not in tests] == []


def test_every_test_that_a_row_names_exists() -> None:
    there = names()
    named = named_in("docs/vault-requirements.md")
    assert len(named) > 80
    assert sorted(named - there) == []


RUN = """
import sys
import pytest
from memory.tests import named_tests

named_tests.DOCUMENTS = (sys.argv[1],)
sys.exit(pytest.main(sys.argv[2:], plugins=[named_tests.NamedTests()]))
"""


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        ([], 1, ["1 of 2 tests ran", "did not run: test_missing"]),
        (["-k", "there"], 0, []),
        (["test_one.py"], 0, []),
    ],
)
def test_a_whole_run_fails_when_a_named_test_did_not_run(
    tmp_path: Path, arguments: list[str], code: int, told: list[str]
) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\ntestpaths = .\n", encoding="utf-8")
    (tmp_path / "test_one.py").write_text(
        "import pytest\n\n@pytest.mark.parametrize('x', [1])\ndef test_there(x): assert x\n",
        encoding="utf-8",
    )
    (tmp_path / "named.md").write_text("| `test_there`, `test_missing` |", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(tmp_path / "named.md"), "-p", "no:django", *arguments],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert [line for line in told if line not in done.stdout] == []
