"""Uploaded files on their way to a worker: in the database, which every host reaches."""

from __future__ import annotations

import io
import uuid
from datetime import timedelta
from typing import IO, Final

from django.db import transaction
from django.db.models.functions import Length
from django.utils.translation import gettext as _

from memory.clock import now
from memory.errors import Invalid
from memory.models import UploadPart

PART_BYTES: Final = 1 << 20
LIFE: Final = timedelta(days=7)


def keep(file: IO[bytes]) -> str:
    """Store a file; its name."""
    name, moment, place = uuid.uuid4(), now(), 0
    with transaction.atomic():
        while (block := _filled(file)) or not place:
            UploadPart.objects.create(upload=name, place=place, data=block, created_at=moment)
            place += 1
    return str(name)


def _filled(file: IO[bytes]) -> bytes:
    """A whole part, also of a file that gives less at a time than it is asked for."""
    block = file.read(PART_BYTES)
    while 0 < len(block) < PART_BYTES and (more := file.read(PART_BYTES - len(block))):
        block += more
    return block


def read(name: str) -> IO[bytes]:
    """The file, a part at a time. Raises ``Invalid`` when it has been forgotten."""
    return io.BufferedReader(_Kept(name))


def is_kept(name: str) -> bool:
    """Whether a file is still there."""
    return UploadPart.objects.filter(upload=name).exists()


def forget(name: str) -> None:
    """Remove a file."""
    UploadPart.objects.filter(upload=name).delete()


def forget_old() -> None:
    """Remove what nobody has read for a week."""
    UploadPart.objects.filter(created_at__lt=now() - LIFE).delete()


class _Kept(io.RawIOBase):
    """A file that can seek, with one part of it in memory."""

    def __init__(self, name: str) -> None:
        self._parts = UploadPart.objects.filter(upload=name)
        last = self._parts.annotate(length=Length("data")).order_by("-place").first()
        if last is None:
            raise _gone()
        self._size = last.place * PART_BYTES + last.length
        self._at, self._place, self._data = 0, last.place, bytes(last.data)

    def readable(self) -> bool:
        """It can be read."""
        return True

    def seekable(self) -> bool:
        """It can seek."""
        return True

    def tell(self) -> int:
        """The place it is at."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Go to a place."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, start + offset)
        return self._at

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Read into a buffer. Raises ``Invalid`` when the file has been forgotten meanwhile."""
        if self._at >= self._size:
            return 0
        place, start = divmod(self._at, PART_BYTES)
        if place != self._place:
            data = self._parts.filter(place=place).values_list("data", flat=True).first()
            if data is None:
                raise _gone()
            self._place, self._data = place, bytes(data)
        piece = self._data[start : start + len(buffer)]
        buffer[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)


def _gone() -> Invalid:
    return Invalid(_("The uploaded file is no longer there."), code="upload_gone")
