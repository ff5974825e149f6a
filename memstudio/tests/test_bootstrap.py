"""Making the virtual environment: what is refused, what is detected, what is left alone."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path

import pytest

from memstudio import bootstrap

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout that needs no package at all."""
    (tmp_path / "requirements.txt").write_text("# nothing\n")
    (tmp_path / "requirements-dev.txt").write_text("-r requirements.txt\n")
    (tmp_path / "requirements-clients.txt").write_text("# nothing\n")
    return tmp_path


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout whose environment has been made."""
    root = tmp_path_factory.mktemp("whole")
    (root / "requirements.txt").write_text("# nothing\n")
    (root / "requirements-dev.txt").write_text("-r requirements.txt\n")
    (root / "requirements-clients.txt").write_text("# nothing\n")
    assert bootstrap.main(["setup"], str(root)) == 0
    return root


def test_python_3_6_can_parse_it() -> None:
    source = (ROOT / "memstudio" / "bootstrap.py").read_text()
    package = (ROOT / "memstudio" / "__init__.py").read_text()
    assert ast.parse(source, feature_version=(3, 6)).body
    assert "__future__" not in source + package


def test_a_python_that_is_too_old_is_one_sentence(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 8, 18, "final", 0))
    assert bootstrap.main(["setup"], str(checkout)) == 1
    assert capsys.readouterr().err == (
        "memory studio: Python 3.11 or newer is needed, and this one is 3.8.18; "
        "name another with PYTHON=...\n"
    )
    assert not (checkout / ".venv").exists()


def test_a_python_without_venv_is_one_sentence(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ensurepip", None)
    assert bootstrap.main(["setup"], str(checkout)) == 1
    assert "apt install python3-venv" in capsys.readouterr().err


def test_a_checkout_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    no_folder = tmp_path / "file"
    no_folder.write_text("")
    with pytest.raises(bootstrap.SetupError, match=r"^Cannot write to .*file \(.+\)\.$"):
        bootstrap.check_writable(str(no_folder))


def test_setup_is_done_once(whole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stamp = whole / ".venv" / "studio-stamp.json"
    before = stamp.stat().st_mtime_ns
    assert bootstrap.main(["setup"], str(whole)) == 0
    assert stamp.stat().st_mtime_ns == before
    assert capsys.readouterr().err == ""


def test_an_environment_without_a_stamp_is_finished(
    whole: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (whole / ".venv" / "studio-stamp.json").unlink()
    assert bootstrap.main(["setup"], str(whole)) == 0
    assert "is half made: finishing it." in capsys.readouterr().err


def test_a_changed_requirement_installs_again(
    whole: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (whole / "requirements.txt").write_text("# nothing, said otherwise\n")
    assert bootstrap.main(["setup"], str(whole)) == 0
    assert "Installing the packages" in capsys.readouterr().err


def test_the_packages_of_the_tests_have_a_stamp_of_their_own(whole: Path) -> None:
    environment = bootstrap.Environment(str(whole))
    assert environment.is_ready(dev=False)
    assert not environment.is_ready(dev=True)
    assert bootstrap.main(["setup", "--dev"], str(whole)) == 0
    assert environment.is_ready(dev=True)
    assert set(json.loads((whole / ".venv" / "studio-stamp.json").read_text())) == {
        "path",
        "run",
        "dev",
    }


def test_a_broken_environment_is_made_again(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (checkout / ".venv" / "bin").mkdir(parents=True)
    (checkout / ".venv" / "bin" / "python").symlink_to(checkout / "gone")
    assert bootstrap.main(["setup"], str(checkout)) == 0
    assert "broken or half made: making it again." in capsys.readouterr().err
    assert bootstrap.Environment(str(checkout)).is_ready(dev=False)


def test_a_package_that_cannot_be_installed_is_one_sentence_and_leaves_no_stamp(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (checkout / "requirements.txt").write_text("./missing-folder\n")
    assert bootstrap.main(["setup"], str(checkout)) == 1
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("memory studio: pip could not install the packages (")
    assert last.endswith("its whole output is in .venv/install.log.")
    assert not (checkout / ".venv" / "studio-stamp.json").exists()


def test_no_network_is_one_sentence(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Port 9 of this machine answers nobody.
    (checkout / "requirements.txt").write_text(
        "--index-url http://127.0.0.1:9/simple\nstudio-probe==1\n"
    )
    assert bootstrap.main(["setup"], str(checkout)) == 1
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("memory studio: The packages could not be fetched: no connection")
