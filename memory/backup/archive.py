"""The archive file: members of JSON lines in a zip, written aside and put in place when complete.

A zip rather than a compressed tar, because its directory at the end tells a truncated file at once,
and because its members can be read in any order.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, cast

from memory.backup.errors import BackupError
from memory.backup.manifest import NAME, Manifest, Member

BLOCK: Final = 1 << 20
LEVEL: Final = 3
"""Of deflate: two thirds of the time of the usual level, for a twentieth more bytes."""
MANIFEST_BYTES: Final = 1 << 24
DAMAGED: Final = (zipfile.BadZipFile, zlib.error, EOFError, UnicodeDecodeError, ValueError)

Progress = Callable[[str, int], None]
"""Told the name of a member and how many rows of it are done."""


def quiet(_name: str, _rows: int) -> None:
    """A progress that nobody watches."""


class ArchiveWriter:
    """Writes an archive beside its place, readable by its owner only, and renames it at the end."""

    def __init__(self, path: Path, progress: Progress = quiet) -> None:
        self._path = path
        self._progress = progress
        self.members: list[Member] = []

    def __enter__(self) -> ArchiveWriter:
        try:
            descriptor, name = tempfile.mkstemp(
                dir=self._path.parent, prefix=f".{self._path.name}."
            )
        except OSError as error:
            reason = (error.strerror or "unknown error").lower()
            raise BackupError(f"Cannot write to {self._path.parent} ({reason}).") from None
        self._draft = Path(name)
        self._file: IO[bytes] = os.fdopen(descriptor, "wb")
        self._zip = zipfile.ZipFile(
            self._file, "w", compression=zipfile.ZIP_DEFLATED, compresslevel=LEVEL
        )
        return self

    def add(self, member: Member, rows: Iterable[Any]) -> Member:
        """Write a member of JSON lines; the same with its hash and the number of its rows."""
        digest, count, lines = hashlib.sha256(), 0, bytearray()
        with self._zip.open(member.name, "w", force_zip64=True) as file:
            for count, row in enumerate(rows, start=1):
                lines += json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode()
                lines += b"\n"
                if len(lines) >= BLOCK:
                    digest.update(lines)
                    file.write(lines)
                    lines.clear()
                    self._progress(member.name, count)
            digest.update(lines)
            file.write(lines)
        self._progress(member.name, count)
        return self._keep(member, digest.hexdigest(), count)

    def add_text(self, name: str, text: str) -> Member:
        """Write a small member as it is."""
        self._zip.writestr(name, text)
        return self._keep(Member(name, "", 0), hashlib.sha256(text.encode()).hexdigest(), 1)

    def close(self, manifest: Manifest) -> None:
        """Write the manifest and put the archive in its place."""
        self._zip.writestr(NAME, json.dumps(manifest.to_json(), ensure_ascii=False, indent=1))
        self._zip.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._draft.replace(self._path)

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        if not self._file.closed:
            # Its directory would be written to a file that goes.
            self._zip.fp = None
            self._file.close()
        self._draft.unlink(missing_ok=True)

    def _keep(self, member: Member, sha256: str, rows: int) -> Member:
        kept = Member(member.name, sha256, rows, member.table, member.columns, member.index)
        self.members.append(kept)
        return kept


class ArchiveReader:
    """Reads an archive. Everything that is wrong with the file is a ``BackupError``."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> ArchiveReader:
        try:
            self._zip = zipfile.ZipFile(self._path)
        except OSError as error:
            reason = (error.strerror or "unknown error").lower()
            raise BackupError(f"Cannot read {self._path} ({reason}).") from None
        except zipfile.BadZipFile:
            raise BackupError(f"{self._path} is not a backup, or its end is missing.") from None
        self.manifest = self._read_manifest()
        return self

    def __exit__(self, *_error: object) -> None:
        self._zip.close()

    def verify(self, progress: Progress = quiet) -> None:
        """Compare every member with the hash in the manifest, and look for members beside them."""
        listed = {member.name for member in self.manifest.members} | {NAME}
        if set(self._zip.namelist()) != listed:
            raise BackupError("The backup is damaged: it does not hold what its manifest names.")
        for member in self.manifest.members:
            if self._hash(member.name) != member.sha256:
                raise _damaged(member.name)
            progress(member.name, member.rows)

    def lines(self, member: Member) -> Iterator[Any]:
        """The rows of a member. Checks that there are as many as the manifest says."""
        count = 0
        with _told(member.name), self._zip.open(member.name) as file:
            # A member reads line by line slowly; behind a buffer it does not.
            lines = io.BufferedReader(cast(io.RawIOBase, file), BLOCK)
            for count, line in enumerate(lines, start=1):  # noqa: B007
                yield json.loads(line)
        if count != member.rows:
            raise _damaged(member.name)

    def text(self, name: str) -> str:
        """A small member as it is."""
        with _told(name):
            return self._zip.read(name).decode()

    def _read_manifest(self) -> Manifest:
        with contextlib.ExitStack() as stack:
            stack.callback(self._zip.close)
            try:
                info = self._zip.getinfo(NAME)
            except KeyError:
                raise BackupError("This is not a backup of Memory Studio.") from None
            if info.file_size > MANIFEST_BYTES:
                raise _damaged(NAME)
            with _told(NAME):
                document = json.loads(self._zip.read(info))
            manifest = Manifest.from_json(document)
            stack.pop_all()
        return manifest

    def _hash(self, name: str) -> str:
        digest = hashlib.sha256()
        with _told(name), self._zip.open(name) as file:
            while block := file.read(BLOCK):
                digest.update(block)
        return digest.hexdigest()


@contextlib.contextmanager
def _told(name: str) -> Iterator[None]:
    """What a damaged file makes the standard library raise, as one sentence."""
    try:
        yield
    except DAMAGED:
        raise _damaged(name) from None


def _damaged(name: str) -> BackupError:
    return BackupError(f"The backup is damaged: {name} is not as it was written.")
