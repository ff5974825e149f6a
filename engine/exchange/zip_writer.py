"""A zip archive written as a stream: of each member only its line of the directory is kept.

The library's own writer keeps an object of a kilobyte for each, a hundred megabytes for a hundred
thousand. The format is APPNOTE.TXT of PKWARE: local headers with sizes (4.3.7), the directory
(4.3.12), and above 65,535 members or 4 GiB the records of zip64 (4.3.14 to 4.3.16).
"""

from __future__ import annotations

import struct
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import IO, Final

LOCAL: Final = struct.Struct("<4s5H3I2H")
CENTRAL: Final = struct.Struct("<4s6H3I5H2I")
END: Final = struct.Struct("<4s4H2IH")
END64: Final = struct.Struct("<4sQ2H2I4Q")
LOCATOR64: Final = struct.Struct("<4sIQI")
DEFLATED: Final = 8
UTF8: Final = 1 << 11
VERSION: Final = 20
VERSION64: Final = 45
MADE_ON_UNIX: Final = (3 << 8) | VERSION64
FILE_MODE: Final = 0o100644 << 16
MANY: Final = 0xFFFF
FAR: Final = 0xFFFFFFFF
SPOOL_BYTES: Final = 1 << 24
"""Above it the directory waits in a file."""
PIECE_BYTES: Final = 1 << 16


def write(members: Iterable[tuple[str, datetime, bytes]]) -> Iterator[bytes]:
    """The archive of members (name, time, content of less than 4 GiB), in pieces."""
    with tempfile.SpooledTemporaryFile(max_size=SPOOL_BYTES) as directory:
        yield from _write(members, directory)


def _write(members: Iterable[tuple[str, datetime, bytes]], directory: IO[bytes]) -> Iterator[bytes]:
    at, count, waiting = 0, 0, bytearray()
    for name, moment, content in members:
        raw = name.encode()
        shared = _shared(moment, content, packed := _packed(content), len(raw))
        waiting += LOCAL.pack(b"PK\x03\x04", VERSION, *shared, 0) + raw + packed
        directory.write(_entry(shared, raw, at))
        at += LOCAL.size + len(raw) + len(packed)
        count += 1
        if len(waiting) > PIECE_BYTES:
            yield bytes(waiting)
            waiting.clear()
    yield bytes(waiting)
    size = directory.tell()
    directory.seek(0)
    while block := directory.read(PIECE_BYTES):
        yield block
    yield _end(count, size, at)


def _packed(content: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(content) + packer.flush()


def _shared(
    moment: datetime, content: bytes, packed: bytes, name_size: int
) -> tuple[int, int, int, int, int, int, int, int]:
    """What the local header and the directory both say: flags, method, time, date, checksum,
    sizes."""
    # What these archives can say begins in 1980 and ends in 2107.
    year = min(max(moment.year, 1980), 2107)
    day = (year - 1980) << 9 | moment.month << 5 | moment.day
    time = moment.hour << 11 | moment.minute << 5 | moment.second // 2
    return UTF8, DEFLATED, time, day, zlib.crc32(content), len(packed), len(content), name_size


def _entry(shared: tuple[int, ...], name: bytes, at: int) -> bytes:
    extra = struct.pack("<2HQ", 1, 8, at) if at >= FAR else b""
    head = (b"PK\x01\x02", MADE_ON_UNIX, VERSION64 if extra else VERSION)
    tail = (len(extra), 0, 0, 0, FILE_MODE, min(at, FAR))
    return CENTRAL.pack(*head, *shared, *tail) + name + extra


def _end(count: int, size: int, at: int) -> bytes:
    end = END.pack(b"PK\x05\x06", 0, 0, *2 * (min(count, MANY),), min(size, FAR), min(at, FAR), 0)
    if count < MANY and size < FAR and at < FAR:
        return end
    wide = END64.pack(b"PK\x06\x06", 44, MADE_ON_UNIX, VERSION64, 0, 0, count, count, size, at)
    return wide + LOCATOR64.pack(b"PK\x06\x07", 0, at + size, 1) + end
