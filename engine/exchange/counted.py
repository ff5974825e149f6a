"""A file that counts what is read from it."""

from __future__ import annotations

import io
from typing import IO


class Counted(io.RawIOBase):
    """Reads another file, which can seek; ``taken`` counts its bytes, again and again."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.taken = 0
        self.size = file.seek(0, io.SEEK_END)
        file.seek(0)

    def readable(self) -> bool:
        """It can be read."""
        return True

    def seekable(self) -> bool:
        """It can seek."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Go to a place. Raises ``OSError`` before the beginning, as files of a disk do."""
        if whence == io.SEEK_SET and offset < 0:
            raise OSError("before the beginning")
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        """The place it is at."""
        return self._file.tell()

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Read into a buffer."""
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        self.taken += len(data)
        return len(data)
