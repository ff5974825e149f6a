"""The data directory: where everything lives that the person owns, and who may use it now.

``<home>/`` (mode 0700) holds ``studio.sqlite3``, ``models/``, ``secrets/`` and ``studio.lock``.
"""

from __future__ import annotations

import base64
import contextlib
import os
import secrets
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from memstudio import env
from memstudio.errors import StartError

LOCK_NAME = "studio.lock"
TURN_NAME = "prepare.lock"


def locate(project_root: Path) -> Path:
    """``MEMORY_STUDIO_HOME``, or ``data`` under the project root; absolute."""
    return Path(env.text("MEMORY_STUDIO_HOME", str(project_root / "data"))).expanduser().absolute()


def prepare(home: Path) -> Path:
    """Make the home where it is missing, and check that it can be written.

    Raises ``StartError`` where it is no directory or may not be written.
    """
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_writable(home)
        (home / "secrets").mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise StartError(_unusable(home, error)) from None
    return home


def django_key(home: Path) -> str:
    """Django's secret key; made on first use."""
    return _key(home, "MEMORY_STUDIO_SECRET_KEY", "django.key", lambda: secrets.token_urlsafe(50))


def encryption_key(home: Path) -> str:
    """The key that seals stored secrets: 32 bytes in urlsafe base64, as Fernet takes it."""
    name = "MEMORY_STUDIO_ENCRYPTION_KEY"
    key = _key(home, name, "encryption.key", _new_encryption_key)
    try:
        size = len(base64.urlsafe_b64decode(key.encode()))
    except ValueError:
        size = 0
    if size != 32:
        where = name if env.secret(name) else str(home / "secrets" / "encryption.key")
        raise StartError(f"{where} is not an encryption key (32 bytes in urlsafe base64).")
    return key


@contextlib.contextmanager
def lock(home: Path) -> Iterator[None]:
    """Hold the home for this process. The system lets go of it however the process ends.

    Raises ``StartError`` when another process holds it.
    """
    with _lock_file(home) as file:
        _acquire(file, home)
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


@contextlib.contextmanager
def turn(home: Path) -> Iterator[None]:
    """Wait until no other process of this home prepares the database, and keep others waiting."""
    try:
        import fcntl
    except ImportError:  # Windows has no flock, and no second process there.
        yield
        return
    with (home / TURN_NAME).open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _key(home: Path, name: str, file_name: str, make: Callable[[], str]) -> str:
    given = env.secret(name)
    if given:
        return given
    path = home / "secrets" / file_name
    try:
        if not path.exists():
            _write_once(path, make())
        key = path.read_text(encoding="ascii").strip()
    except OSError as error:
        raise StartError(_unusable(path, error)) from None
    except UnicodeDecodeError:
        key = ""
    if not key:
        raise StartError(f"{path} is empty or damaged; put back the key from a backup.")
    return key


def _write_once(path: Path, key: str) -> None:
    # A link appears whole or not at all, and never replaces: two first starts at once agree.
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    draft = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(f"{key}\n")
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(draft)
    finally:
        draft.unlink()


def _new_encryption_key() -> str:
    return base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()


def _check_writable(home: Path) -> None:
    # Permission bits lie (root, read-only mounts, network file systems): only writing tells.
    with tempfile.TemporaryFile(dir=home):
        pass


def _lock_file(home: Path) -> IO[str]:
    try:
        return (home / LOCK_NAME).open("a+", encoding="ascii")
    except OSError as error:
        raise StartError(_unusable(home, error)) from None


def _acquire(file: IO[str], home: Path) -> None:
    try:
        import fcntl
    except ImportError:  # Windows has no flock; the busy port still tells of a second server.
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        holder = file.read().strip()
        by = f" (process {holder})" if holder else ""
        raise StartError(
            f"Memory Studio already runs on {home}{by}; stop it first, or set MEMORY_STUDIO_HOME."
        ) from None


def _unusable(path: Path, error: OSError) -> str:
    reason = (error.strerror or "unknown error").lower()
    return f"Cannot write to {path} ({reason}); set MEMORY_STUDIO_HOME to a writable directory."
