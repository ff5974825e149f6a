"""A running studio keeps the promises of ``docs/openapi.json``: a short run of schemathesis.

Ten minutes of it are ``make fuzz``.
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

import pytest

from benchmarks.contract import run
from benchmarks.studio_process import serving
from memory.tests.own_stack import environment

SHORT = ("--seed", "1", "--max-examples", "3", "--max-time", "35", "--no-color")


@pytest.fixture
def environ(tmp_path: Path, settings: Any) -> dict[str, str]:
    """A home of its own; passes are signed here and checked there."""
    secret = secrets.token_urlsafe(48)
    settings.SECRET_KEY = secret
    return environment(tmp_path) | {"MEMORY_STUDIO_SECRET_KEY": secret}


def test_no_route_breaks_its_description(environ: dict[str, str]) -> None:
    with serving(environ) as (url, _link):
        status, report = run.run(url, environ, SHORT)
    assert status == 0, report
