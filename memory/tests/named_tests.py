"""Tests that a document names as what holds its promises; a whole run checks that they ran.

A plugin of pytest (``conftest.py``). A run of a part of the suite checks nothing.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = ("docs/vault-requirements.md", "docs/contract.md")
NAME = re.compile(r"`(?:\w+\.py::)?(test_\w+)`")


def named_in(document: str) -> set[str]:
    """The tests that a document names."""
    return set(NAME.findall((ROOT / document).read_text(encoding="utf-8")))


def is_whole(config: pytest.Config) -> bool:
    """Whether a run leaves nothing out by its arguments."""
    chosen = config.option
    from_settings = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    return from_settings and not (chosen.keyword or chosen.markexpr or chosen.collectonly)


class NamedTests:
    """Collects the names of the tests that ran, and ends a whole run badly where one is missing."""

    def __init__(self) -> None:
        self._ran: set[str] = set()
        self._lines: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a test whose body ran."""
        if report.when == "call" and not report.skipped:
            self._ran.add(report.nodeid.rpartition("::")[2].partition("[")[0])

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Compare with the documents."""
        if not is_whole(session.config):
            return
        for document in DOCUMENTS:
            named = named_in(document)
            missing = sorted(named - self._ran)
            self._lines.append(f"{document}: {len(named) - len(missing)} of {len(named)} tests ran")
            self._lines += [f"  did not run: {name}" for name in missing]
            if missing and session.exitstatus == pytest.ExitCode.OK:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say how it was."""
        for line in self._lines:
            terminalreporter.write_line(line)
