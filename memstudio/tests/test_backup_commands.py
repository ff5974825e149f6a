"""``manage.py backup`` and ``restore`` as a person runs them, with homes of their own."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
import subprocess
import sys
import zipfile
from contextlib import closing
from pathlib import Path

import pytest
from cryptography.fernet import Fernet, InvalidToken
from django.conf import settings

ROOT = Path(settings.BASE_DIR)
MIGRATE = "from django.core.management import call_command\ncall_command('migrate', verbosity=0)\n"
OTHER_KEY = "b3RoZXIta2V5LW90aGVyLWtleS1vdGhlci1rZXktMTI="


def manage(place: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command with a home of its own."""
    mine = ("MEMORY_", "DATABASE_", "CELERY_", "DJANGO_")
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(mine)}
    return subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), *arguments],
        env={**inherited, "MEMORY_STUDIO_HOME": str(place), **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with two memories and a stored secret."""
    place = tmp_path_factory.mktemp("studio")
    script = """
from memory.principal import SYSTEM
from memory.services import exchange, settings, signin
signin.first_start()
exchange.import_records(SYSTEM, [{"content": "likes tea"}, {"content": "likes cocoa"}], owner=None)
settings.update(SYSTEM, {"customApiKey": "s3cret"})
"""
    done = manage(place, "shell", "-c", MIGRATE + script)
    assert done.returncode == 0, done.stderr
    return place


def _secret(place: Path) -> str:
    """The stored secret, opened with the key in the home; empty when that is another key."""
    with closing(sqlite3.connect(place / "studio.sqlite3")) as database:
        (stored,) = database.execute("SELECT stored FROM memory_enginesettings").fetchone()
    sealed = json.loads(stored)["memoryEmbeddingCustomApiKey"]
    try:
        key = (place / "secrets" / "encryption.key").read_text().strip()
        return Fernet(key).decrypt(sealed.encode()).decode()
    except InvalidToken:
        return ""


def test_a_fresh_machine_is_made_from_a_backup_with_its_keys(studio: Path, tmp_path: Path) -> None:
    file, fresh = tmp_path / "b.zip", tmp_path / "fresh"
    done = manage(studio, "backup", str(file), "--with-keys")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("2 memories (")
    assert "can read every stored secret" in done.stderr
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    done = manage(fresh, "restore", str(file))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("2 memories (")
    assert "2 passages are embedded when the studio runs." in done.stderr
    assert "sealed by another key" not in done.stderr
    for name in ("encryption.key", "django.key"):
        key = fresh / "secrets" / name
        assert key.read_text() == (studio / "secrets" / name).read_text()
        assert stat.S_IMODE(key.stat().st_mode) == 0o600
        assert key.with_name(f"{name}.before-restore").exists()
    assert _secret(fresh) == "s3cret"


def test_without_the_keys_one_is_told_which_key_is_needed(studio: Path, tmp_path: Path) -> None:
    file, fresh = tmp_path / "b.zip", tmp_path / "fresh"
    done = manage(studio, "backup", str(file))
    assert "keep a copy of secrets/encryption.key" in done.stderr
    with zipfile.ZipFile(file) as archive:
        assert not [name for name in archive.namelist() if name.startswith("keys/")]
    key = (studio / "secrets" / "encryption.key").read_text()
    assert key.strip().encode() not in file.read_bytes()
    done = manage(fresh, "restore", str(file))
    assert done.returncode == 0
    assert "sealed by another key" in done.stderr
    assert _secret(fresh) == ""
    (fresh / "secrets" / "encryption.key").write_text(key)
    assert _secret(fresh) == "s3cret"
