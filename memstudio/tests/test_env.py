"""Readers of the environment: defaults, bounds, and refusals in one sentence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from memstudio import env
from memstudio.errors import StartError

NAME = "STUDIO_TEST_VALUE"


def test_an_unset_or_blank_variable_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(NAME, raising=False)
    assert (env.text(NAME, "a"), env.flag(NAME, True), env.integer(NAME, 7)) == ("a", True, 7)
    monkeypatch.setenv(NAME, "  ")
    assert env.texts(NAME, ("x",)) == ["x"]
    assert env.secret(NAME) is None


@pytest.mark.parametrize(
    ("value", "expected"), [("1", True), ("TRUE", True), ("on", True), ("no", False), ("0", False)]
)
def test_a_flag_reads_the_usual_words(
    monkeypatch: pytest.MonkeyPatch, value: str, expected: bool
) -> None:
    monkeypatch.setenv(NAME, value)
    assert env.flag(NAME, not expected) is expected


def test_a_list_drops_blank_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, " a, ,b ,")
    assert env.texts(NAME) == ["a", "b"]


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ("maybe", lambda: env.flag(NAME, False)),
        ("1.5", lambda: env.integer(NAME, 1)),
        ("0", lambda: env.integer(NAME, 1, low=1)),
        ("99", lambda: env.integer(NAME, 1, high=10)),
        ("loud", lambda: env.choice(NAME, "INFO", ("INFO", "ERROR"))),
    ],
)
def test_an_odd_value_refuses_to_start_and_names_the_variable(
    monkeypatch: pytest.MonkeyPatch, value: str, read: Callable[[], object]
) -> None:
    monkeypatch.setenv(NAME, value)
    with pytest.raises(StartError, match=f"^{NAME} must be .*\\.$"):
        read()


@pytest.mark.parametrize(
    "value", ["vaultd:8001", "ftp://a", "http://a/b", "http://u:p@a", "http://a:99999", "http://"]
)
def test_an_address_of_a_server_is_that_and_no_more(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv(NAME, value)
    with pytest.raises(StartError, match=f"^{NAME} must be http://host:port"):
        env.origin(NAME)
    monkeypatch.setenv(NAME, "https://vaultd.example:8001/")
    assert env.origin(NAME) == "https://vaultd.example:8001"


def test_a_choice_is_found_in_any_case(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, "error")
    assert env.choice(NAME, "INFO", ("INFO", "ERROR")) == "ERROR"


def test_a_secret_may_lie_in_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("s3cret\n")
    monkeypatch.setenv(f"{NAME}_FILE", str(file))
    assert env.secret(NAME) == "s3cret"


def test_a_secret_given_twice_is_refused_without_showing_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(NAME, "s3cret")
    monkeypatch.setenv(f"{NAME}_FILE", str(tmp_path / "secret"))
    with pytest.raises(StartError) as refused:
        env.secret(NAME)
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize("content", [None, "", "\n"])
def test_a_missing_or_empty_secret_file_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: str | None
) -> None:
    file = tmp_path / "secret"
    if content is not None:
        file.write_text(content)
    monkeypatch.setenv(f"{NAME}_FILE", str(file))
    with pytest.raises(StartError, match=f"{NAME}_FILE names"):
        env.secret(NAME)


def test_a_prefix_collects_whole_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{NAME}_A", "1")
    assert env.prefixed(NAME) == {f"{NAME}_A": "1"}
