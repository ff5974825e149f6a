"""What ``backup`` and ``restore`` refuse, and the key files that a restore puts back."""

from __future__ import annotations

import io
import stat
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from memory.models import ApiKey
from memory.services import signin
from memstudio import home, keyfiles
from memstudio.errors import StartError

NEW, OLD = "bmV3", "b2xk"


@pytest.fixture
def file(tmp_path: Path, settings: Any, transactional_db: None) -> Path:
    """A backup of a studio that was started once; its home is a folder of the test."""
    settings.MEMORY_STUDIO_HOME = tmp_path / "home"
    home.prepare(tmp_path / "home")
    signin.first_start()
    said, warned = _backup(tmp_path / "b.zip")
    assert said.startswith("0 memories (")
    assert "keep a copy of secrets/encryption.key" in warned
    return tmp_path / "b.zip"


def _backup(path: Path, *options: str) -> tuple[str, str]:
    said, warned = io.StringIO(), io.StringIO()
    call_command("backup", str(path), *options, stdout=said, stderr=warned)
    return said.getvalue(), warned.getvalue()


def _restore(path: Path, *options: str) -> tuple[str, str]:
    said, warned = io.StringIO(), io.StringIO()
    call_command("restore", str(path), *options, stdout=said, stderr=warned)
    return said.getvalue(), warned.getvalue()


def test_a_studio_that_runs_is_not_restored_over(file: Path, tmp_path: Path) -> None:
    if connection.vendor != "sqlite":
        assert _restore(file, "--replace")[0].startswith("0 memories (")
        return
    with home.lock(tmp_path / "home"):
        _backup(file)
        with pytest.raises(StartError, match="Memory Studio already runs"):
            _restore(file, "--replace")
    assert _restore(file, "--replace")[0].startswith("0 memories (")


def test_a_refusal_is_one_sentence(file: Path, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"--replace erases them first\. Nothing was changed\."):
        _restore(file)
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(CommandError, match=r"its end is missing\. Nothing was changed\."):
        _restore(file, "--replace")
    assert ApiKey.objects.get().name == "Default"
    with pytest.raises(CommandError, match=r"Cannot write to .*no such file or directory"):
        _backup(tmp_path / "absent" / "b.zip")


def test_a_restore_says_which_key_sealed_the_secrets(file: Path, settings: Any) -> None:
    settings.ENCRYPTION_KEY = NEW
    assert "were sealed by another key" in _restore(file, "--replace")[1]


def test_keys_come_back_into_the_home_and_no_key_is_lost(
    file: Path, tmp_path: Path, settings: Any
) -> None:
    secrets = tmp_path / "home" / "secrets"
    (secrets / "encryption.key").write_text(f"{OLD}\n")
    settings.ENCRYPTION_KEY = NEW
    assert "can read every stored secret" in _backup(file, "--with-keys")[1]
    settings.ENCRYPTION_KEY = OLD
    assert _restore(file, "--replace")[1] == ""
    assert (secrets / "encryption.key").read_text() == f"{NEW}\n"
    assert (secrets / "encryption.key.before-restore").read_text() == f"{OLD}\n"
    assert stat.S_IMODE((secrets / "encryption.key").stat().st_mode) == 0o600


def test_a_variable_that_wins_over_a_key_file_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.prepare(tmp_path)
    monkeypatch.setenv("MEMORY_STUDIO_ENCRYPTION_KEY", OLD)
    assert keyfiles.put(tmp_path, {"encryption.key": NEW}) == ["MEMORY_STUDIO_ENCRYPTION_KEY"]
    monkeypatch.setenv("MEMORY_STUDIO_ENCRYPTION_KEY", NEW)
    assert keyfiles.put(tmp_path, {"encryption.key": NEW, "surprise.key": OLD}) == []
    assert [path.name for path in (tmp_path / "secrets").iterdir()] == ["encryption.key"]
