"""A folder of files that nothing can leave: every step opens one name inside the step before.

No path is ever put together for the system: links, ``..`` and races between a check and its use
lead nowhere.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from engine.backends.note_names import MAX_DEPTH, SUFFIX, check, folded
from engine.errors import BackendFailed

MAX_NOTE: Final = 4 * 1024 * 1024
MAX_NOTES: Final = 100_000
FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Found:
    """A note as it lies there: its path in the vault, its text, and its times in seconds."""

    path: str
    text: str
    created: float
    modified: float


class Vault:
    """The notes below one folder of a vault. Thread-safe: it holds nothing open.

    Raises ``BackendFailed``: ``outside_vault`` for a path that would leave it, ``not_found`` when
    the vault itself is not there.
    """

    def __init__(self, root: Path, folder: Sequence[str] = ()) -> None:
        self._root = root
        self._folder = tuple(folder)

    def read(self, path: str) -> Found | None:
        """One note; None when there is none, when it is a link, too large or no text."""
        parts = check(path)
        with ExitStack() as held:
            try:
                at = self._enter(held, parts[:-1])
                return _read(at, parts[-1], path)
            except FileNotFoundError:
                return None

    def write(self, path: str, text: str, *, must_exist: bool) -> bool:
        """Put a note in its place as a whole; False when ``must_exist`` and it does not."""
        parts = check(path)
        with ExitStack() as held, _failures():
            try:
                at = self._enter(held, parts[:-1], make=not must_exist)
                if must_exist and not _is_file(at, parts[-1]):
                    return False
            except FileNotFoundError:
                return False
            _replace(at, parts[-1], text)
        return True

    def remove(self, path: str) -> bool:
        """Remove a note; False when there is none."""
        parts = check(path)
        with ExitStack() as held, _failures():
            try:
                at = self._enter(held, parts[:-1])
                if not _is_file(at, parts[-1]):
                    return False
                os.unlink(parts[-1], dir_fd=at)
            except FileNotFoundError:
                return False
        return True

    def names(self) -> set[str]:
        """Names in the folder where new notes go, folded."""
        with (
            ExitStack() as held,
            _failures(),
            os.scandir(self._enter(held, (), make=True)) as entries,
        ):
            return {folded(entry.name) for entry in entries}

    def walk(self) -> Iterator[Found]:
        """Every note, in the order of its path. Links and hidden names are passed over."""
        with ExitStack() as held:
            root = self._enter(held, ())
            for path in sorted(_paths(root, ()))[:MAX_NOTES]:
                if (found := self.read(path)) is not None:
                    yield found

    def probe(self) -> int:
        """Write and remove a file, and count the notes. Raises when one of them fails."""
        with ExitStack() as held, _failures():
            at = self._enter(held, (), make=True)
            name = f".memory-probe-{secrets.token_hex(8)}"
            os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=at))
            os.unlink(name, dir_fd=at)
            return len(_paths(at, ()))

    def _enter(self, held: ExitStack, parts: Sequence[str], *, make: bool = False) -> int:
        """Open the folder of a note, one part at a time. Raises ``FileNotFoundError``."""
        with _failures():
            at = self._opened(held)
            for part in (*self._folder, *parts):
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(part, 0o755, dir_fd=at)
                at = os.open(part, FOLDER, dir_fd=at)
                held.callback(os.close, at)
            return at

    def _opened(self, held: ExitStack) -> int:
        try:
            # The vault's own path is the operator's word: links in it are meant.
            at = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            raise BackendFailed("The folder of the vault is not there.", code="not_found") from None
        held.callback(os.close, at)
        return at


@contextmanager
def _failures() -> Iterator[None]:
    """Errors of the system as ours, but for a missing file."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            told = "This place of the vault is a link or no folder."
            raise BackendFailed(told, code="outside_vault") from None
        told = os.strerror(error.errno or 0)
        raise BackendFailed(f"The vault cannot be used ({told}).") from None


def _read(at: int, name: str, path: str) -> Found | None:
    try:
        opened = os.open(
            name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=at
        )
    except FileNotFoundError:
        raise
    except OSError:
        return None
    with os.fdopen(opened, "rb") as file:
        facts = os.fstat(opened)
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > MAX_NOTE:
            return None
        try:
            text = file.read(MAX_NOTE + 1).decode("utf-8")
        except (OSError, UnicodeDecodeError):
            return None
    return Found(path, text, min(facts.st_ctime, facts.st_mtime), facts.st_mtime)


def _is_file(at: int, name: str) -> bool:
    return stat.S_ISREG(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode)


def _replace(at: int, name: str, text: str) -> None:
    """Readers see the earlier note or the new one, never a half."""
    temporary = f".memory-{secrets.token_hex(8)}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    opened = os.open(temporary, flags, 0o644, dir_fd=at)
    try:
        with os.fdopen(opened, "wb") as file:
            file.write(text.encode("utf-8", "replace"))
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, name, src_dir_fd=at, dst_dir_fd=at)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=at)
        raise


def _paths(at: int, parts: tuple[str, ...]) -> list[str]:
    """Paths of all notes below an open folder."""
    found: list[str] = []
    with os.scandir(at) as entries:
        listed = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_folder in listed:
        if name.startswith(".") or len(parts) >= MAX_DEPTH:
            continue
        if is_folder:
            found.extend(_below(at, name, (*parts, name)))
        elif name.endswith(SUFFIX):
            found.append("/".join((*parts, name)))
    return found


def _below(at: int, name: str, parts: tuple[str, ...]) -> list[str]:
    try:
        inner = os.open(name, FOLDER, dir_fd=at)
    except OSError:
        return []
    try:
        return _paths(inner, parts)
    finally:
        os.close(inner)
