"""``docs/openapi.json`` says what the routes are."""

from __future__ import annotations

import json
import re
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from memory.api import snapshot
from memory.tests.rest import MISSING, ROUTES


def _kept() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(snapshot.path().read_text(encoding="utf-8"))
    return document


def test_the_kept_document_is_current() -> None:
    call_command("openapi", "--check")
    printed = StringIO()
    call_command("openapi", "--print", stdout=printed)
    assert json.loads(printed.getvalue()) == _kept()


def test_a_document_that_differs_is_noticed(settings: Any, tmp_path: Any) -> None:
    settings.BASE_DIR = tmp_path
    with pytest.raises(CommandError, match="is not current"):
        call_command("openapi", "--check")
    (tmp_path / "docs").mkdir()
    call_command("openapi", stdout=StringIO())
    call_command("openapi", "--check")
    snapshot.path().write_text("{}", encoding="utf-8")
    with pytest.raises(CommandError, match="not current"):
        call_command("openapi", "--check")


def test_every_route_that_the_tests_know_is_described_and_no_other() -> None:
    described = {
        (method.upper(), re.sub(r"\{[^}]+\}", MISSING, path))
        for path, methods in _kept()["paths"].items()
        for method in methods
    }
    assert described == {(route.method, route.path.partition("?")[0]) for route in ROUTES}
