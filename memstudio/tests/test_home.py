"""The data directory: modes, secrets, and one server at a time."""

from __future__ import annotations

import base64
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from memstudio import home
from memstudio.errors import StartError

HOLD = """
import sys
from pathlib import Path
from memstudio import home
with home.lock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_home_and_its_secrets_belong_to_the_person_only(tmp_path: Path) -> None:
    studio = home.prepare(tmp_path / "new" / "studio")
    home.django_key(studio)
    home.encryption_key(studio)
    assert mode(studio) == 0o700
    assert mode(studio / "secrets") == 0o700
    assert {file.name: mode(file) for file in (studio / "secrets").iterdir()} == {
        "django.key": 0o600,
        "encryption.key": 0o600,
    }


def test_secrets_stay_the_same_over_starts(tmp_path: Path) -> None:
    studio = home.prepare(tmp_path)
    first = home.django_key(studio), home.encryption_key(studio)
    assert (home.django_key(studio), home.encryption_key(studio)) == first
    assert Fernet(first[1]).decrypt(Fernet(first[1]).encrypt(b"text")) == b"text"


def test_first_starts_at_once_agree_on_one_secret(tmp_path: Path) -> None:
    studio = home.prepare(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        keys = set(pool.map(lambda _: home.encryption_key(studio), range(32)))
    assert len(keys) == 1
    assert [file.name for file in (studio / "secrets").iterdir()] == ["encryption.key"]


def test_a_key_from_the_environment_wins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    given = base64.urlsafe_b64encode(b"k" * 32).decode()
    monkeypatch.setenv("MEMORY_STUDIO_ENCRYPTION_KEY", given)
    assert home.encryption_key(home.prepare(tmp_path)) == given
    assert not list((tmp_path / "secrets").iterdir())


@pytest.mark.parametrize("content", ["", "short", "not base64 at all !"])
def test_a_damaged_key_refuses_to_start(tmp_path: Path, content: str) -> None:
    studio = home.prepare(tmp_path)
    (studio / "secrets" / "encryption.key").write_text(content)
    with pytest.raises(StartError, match=r"encryption\.key"):
        home.encryption_key(studio)


def test_a_home_that_is_a_file_refuses_to_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StartError, match=r"Cannot write to .*MEMORY_STUDIO_HOME"):
        home.prepare(tmp_path / "file")


def test_a_second_server_on_the_same_home_is_refused(tmp_path: Path) -> None:
    with (
        home.lock(tmp_path),
        pytest.raises(StartError, match="already runs on"),
        home.lock(tmp_path),
    ):
        raise AssertionError("the lock was given twice")


def test_the_lock_of_a_killed_server_is_free_again(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == b"held\n"
        with pytest.raises(StartError, match=f"process {server.pid}"), home.lock(tmp_path):
            pass
        server.kill()
    with home.lock(tmp_path):
        assert (tmp_path / home.LOCK_NAME).read_text().strip() != str(server.pid)
