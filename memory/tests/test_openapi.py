"""``docs/openapi.json`` says what the routes are."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from ninja import Schema

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


def _operations() -> list[tuple[str, dict[str, Any]]]:
    return [
        (f"{method.upper()} {path}", operation)
        for path, methods in _kept()["paths"].items()
        for method, operation in methods.items()
    ]


def test_every_route_names_what_it_refuses_in_the_one_shape() -> None:
    for name, operation in _operations():
        told = set(operation["responses"])
        assert {"200", "401", "403", "503"} <= told, name
        takes_input = bool(operation.get("parameters")) or "requestBody" in operation
        assert ("422" in told) is (takes_input or not name.startswith("GET ")), name
        assert ("400" in told) is ("requestBody" in operation), name
    for response in _kept()["components"]["responses"].values():
        shape = response["content"]["application/json"]["schema"]
        assert shape == {"$ref": "#/components/schemas/ErrorBody"}


def test_every_answer_has_a_shape() -> None:
    without = [
        name
        for name, operation in _operations()
        if not operation["responses"]["200"].get("content", {}).get("application/json")
    ]
    assert without == []


def test_a_body_that_may_be_left_out_is_still_an_object() -> None:
    (body,) = (
        operation["requestBody"]
        for name, operation in _operations()
        if name == "POST /api/memory/summarize"
    )
    assert body["content"]["application/json"]["schema"]["$ref"].endswith("/SummarizeIn")
    assert not body.get("required")


def test_the_settings_that_are_answered_are_all_described(api: Any) -> None:
    shape = _kept()["components"]["schemas"]["MemorySettingsOut"]["properties"]
    answer = api("manager", "manage").call("GET", "/api/settings/memory").json()
    assert set(answer) == set(shape)


def test_no_two_shapes_share_a_name() -> None:
    def below(shape: type[Any]) -> Iterator[type[Any]]:
        for inner in shape.__subclasses__():
            yield inner
            yield from below(inner)

    found = {inner for inner in below(Schema) if inner.__module__.startswith("memory.api")}
    counted = Counter(inner.__name__ for inner in found)
    assert [name for name, count in counted.items() if count > 1] == []
