"""Archives: their members are read in place, never written anywhere, and never without bound."""

from __future__ import annotations

import gzip
import io
import lzma
import struct
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, Final

from engine.exchange.found import Unreadable

ZIP_MARKS: Final = (b"PK\x03\x04", b"PK\x05\x06")
GZIP_MARK: Final = b"\x1f\x8b"
MAX_MEMBERS: Final = 500_000
MAX_EXPANDED: Final = 4 << 30
"""Bytes that an archive may hold when it is unpacked."""
FREE_EXPANDED: Final = 64 << 20
MAX_RATIO: Final = 200
"""Above 64 MiB, so many times its own size; text is packed to a tenth, a bomb to a thousandth."""
DAMAGES: Final = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    OSError,
    NotImplementedError,
)
"""What reading a damaged, encrypted or oddly packed member raises."""
LIES: Final = (ValueError, IndexError, struct.error, RuntimeError)
"""What the library raises, besides, over headers that make no sense."""

Open = Callable[[], IO[bytes]]


@dataclass(frozen=True, slots=True)
class Member:
    """A file to read: of an archive with its name there, else without one."""

    name: str
    open: Open


def members(file: IO[bytes], size: int) -> list[Member]:
    """The files in a file: itself, what it is packed from, or those of an archive, by name.

    Raises ``Unreadable`` for an archive that is damaged or grows beyond bounds.
    """
    file.seek(0)
    start = file.read(4)
    file.seek(0)
    if start in ZIP_MARKS:
        return _of_zip(file, size)
    if start.startswith(GZIP_MARK):
        return [Member("", lambda: _unpacked(_from_start(file), _Budget(_most(size))))]
    return [Member("", lambda: _from_start(file))]


def _from_start(file: IO[bytes]) -> IO[bytes]:
    file.seek(0)
    return file


def _of_zip(file: IO[bytes], size: int) -> list[Member]:
    try:
        packed = zipfile.ZipFile(file)
    except (*DAMAGES, *LIES) as error:
        raise Unreadable("The archive is damaged.", code="invalid_archive") from error
    infos = [info for info in packed.infolist() if _is_wanted(info.filename)]
    # A member never yields more than it declares, so that this is what will be read at most.
    total = sum(info.file_size for info in infos)
    if len(infos) > MAX_MEMBERS or total > _most(size):
        raise too_large()
    # For all of its members that are packed once more: each by itself could be small enough.
    budget = _Budget(_most(size))
    return [_member(packed, info, budget) for info in sorted(infos, key=lambda i: i.filename)]


def _member(packed: zipfile.ZipFile, info: zipfile.ZipInfo, budget: _Budget) -> Member:
    def opened() -> IO[bytes]:
        if info.flag_bits & 1:
            raise zipfile.BadZipFile("encrypted")
        try:
            file = packed.open(info)
        except LIES as error:
            raise zipfile.BadZipFile("its header cannot be read") from error
        return _unpacked(file, budget) if info.filename.endswith(".gz") else file

    return Member(info.filename, opened)


def _is_wanted(name: str) -> bool:
    if not name or name.endswith("/"):
        return False
    parts = [part for part in name.split("/") if part not in (".", "..")]
    return not any(part.startswith((".", "__MACOSX")) for part in parts)


def is_safe(name: str) -> bool:
    """Whether the name of a member stays inside of the archive."""
    parts = name.replace("\\", "/").split("/")
    return not name.startswith(("/", "\\")) and ".." not in parts and ":" not in parts[0]


def _most(size: int) -> int:
    return min(MAX_EXPANDED, max(FREE_EXPANDED, MAX_RATIO * size))


def too_large() -> Unreadable:
    """The refusal of an archive that grows beyond bounds."""
    message = "The archive holds too much when it is unpacked."
    return Unreadable(message, code="archive_too_large")


class _Budget:
    """How many bytes may still be unpacked."""

    def __init__(self, most: int) -> None:
        self._left = most

    def take(self, count: int) -> None:
        """Use some up. Raises ``Unreadable`` when there were fewer."""
        self._left -= count
        if self._left < 0:
            raise too_large()


def _unpacked(file: IO[bytes], budget: _Budget) -> IO[bytes]:
    return io.BufferedReader(_Bounded(gzip.GzipFile(fileobj=file), budget))


class _Bounded(io.RawIOBase):
    """Reads a packed file, but not beyond a number of bytes."""

    def __init__(self, file: gzip.GzipFile, budget: _Budget) -> None:
        self._file = file
        self._budget = budget

    def readable(self) -> bool:
        """It can be read."""
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Read into a buffer. Raises ``Unreadable`` beyond the bound."""
        data = self._file.read(len(buffer))
        self._budget.take(len(data))
        buffer[: len(data)] = data
        return len(data)
