"""Parts as files that are mapped into memory: a start reads nothing twice and builds nothing.

A file is a cache. It is taken only when it is whole, was written for this build of the index, and
the change log still leads from it to now; otherwise the part is built from the database again.
"""

from __future__ import annotations

import json
import logging
import mmap
import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import get_ident
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from engine.columns.table import Table
from engine.keyword.cutting import FieldWeights
from engine.keyword.parts import PartKey
from engine.keyword.segment import Segment, summed
from engine.keyword.stored_terms import Mark, Words
from engine.keyword.vocabulary import Vocabulary

MAGIC: Final = b"MSPOST02"
HEAD: Final = struct.Struct("<8sIQ")
"""Magic, CRC-32 of all that follows, length of the description."""
ALIGNED: Final = 64

Array = npt.NDArray[np.generic]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PartFile:
    """A part as it stood at one place of the change log."""

    build: str
    weights: FieldWeights
    seen: int
    mark: Mark
    """Written after ``seen``: a log without it belongs to another history of the database."""
    segment: Segment
    words: Words


class PartFiles:
    """The files of one index, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, key: PartKey, part: PartFile) -> None:
        """Put a part away, in place of an older file. Raises ``OSError``."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        described = _described(part)
        check = 0
        for piece in _pieces(described, part.segment):
            check = zlib.crc32(piece, check)
        unfinished = self._path(key).with_suffix(f".{os.getpid()}-{get_ident()}.part")
        try:
            descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(HEAD.pack(MAGIC, check, len(described)))
                file.writelines(_pieces(described, part.segment))
            unfinished.replace(self._path(key))
        finally:
            unfinished.unlink(missing_ok=True)

    def read(self, key: PartKey) -> PartFile | None:
        """A part as it was put away; None when there is no whole file of it."""
        try:
            with self._path(key).open("rb") as file:
                held = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
            return _parsed(held)
        except (OSError, ValueError, KeyError, TypeError, struct.error):
            return None

    def forget(self) -> None:
        """Remove every file, and what a killed process left unfinished. Logs what it cannot."""
        for pattern in ("*.postings", "*.part"):
            for path in self._folder.glob(pattern):
                try:
                    path.unlink(missing_ok=True)
                except OSError as error:
                    _log.warning("%s cannot be removed: %s", path.name, type(error).__name__)

    def _path(self, key: PartKey) -> Path:
        return self._folder / f"{key}.postings"


def _arrays(segment: Segment) -> list[Array]:
    return [
        *segment.table.columns(),
        segment.lengths,
        segment.terms.blob,
        segment.terms.ends,
        segment.starts,
        segment.rows,
        segment.weights,
        segment.order,
    ]


def _described(part: PartFile) -> bytes:
    described = {
        "build": part.build,
        "weights": part.weights,
        "seen": part.seen,
        "mark": [part.mark.place, part.mark.entry],
        "types": list(part.words.types),
        "sessions": list(part.words.sessions),
        "arrays": [[array.dtype.str, array.size] for array in _arrays(part.segment)],
    }
    return json.dumps(described).encode()


def _pieces(described: bytes, segment: Segment) -> Iterator[bytes | memoryview]:
    """What follows the head: the description, and each array at an aligned place."""
    size = HEAD.size
    arrays = [array.view(np.uint8).data for array in _arrays(segment)]
    pieces: list[bytes | memoryview] = [described, *arrays]
    for piece in pieces:
        yield piece
        gap = -(size + len(piece)) % ALIGNED
        yield bytes(gap)
        size += len(piece) + gap


def _parsed(held: memoryview) -> PartFile | None:
    magic, check, size = HEAD.unpack_from(held)
    if magic != MAGIC or zlib.crc32(held[HEAD.size :]) != check:
        return None
    described = json.loads(bytes(held[HEAD.size : HEAD.size + size]))
    place = HEAD.size + size
    arrays: list[Array] = []
    for dtype, count in described["arrays"]:
        place += -place % ALIGNED
        arrays.append(np.frombuffer(held, dtype, count, place))
        place += arrays[-1].nbytes
    first, second, third = described["weights"]
    return PartFile(
        build=described["build"],
        weights=(first, second, third),
        seen=described["seen"],
        mark=Mark(*described["mark"]),
        segment=_segment(arrays),
        words=Words(_codes(described["types"]), _codes(described["sessions"])),
    )


def _segment(arrays: Sequence[Any]) -> Segment:
    *columns, lengths, blob, ends, starts, rows, weights, order = arrays
    return Segment(
        table=Table(*columns),
        lengths=lengths,
        terms=Vocabulary(blob, ends),
        starts=starts,
        rows=rows,
        weights=weights,
        order=order,
        total=summed(lengths),
    )


def _codes(words: Sequence[str]) -> dict[str, int]:
    return {word: code for code, word in enumerate(words)}
