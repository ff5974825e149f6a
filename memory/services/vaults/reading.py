"""The part of a document that a reader sees, with a chunk marked by its byte offsets."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final

SHOWN_BYTES: Final = 120_000
BEFORE_BYTES: Final = 20_000


@dataclass(frozen=True, slots=True)
class Part:
    """Text before, inside and after the mark; byte offsets are those of the whole body.

    ``earlier`` and ``later`` are where the parts around this one begin; None at an end.
    """

    before: str
    marked: str
    after: str
    start: int
    end: int
    total: int
    sha256: str
    chunk_hash: str = ""
    earlier: int | None = None
    later: int | None = None
    is_off: bool = False
    """Whether a mark was asked for that is no place in this body."""


def part(body: str, *, at: int = 0, mark: tuple[int, int] | None = None) -> Part:
    """The part around a mark, or from ``at`` on, cut between characters."""
    data = body.encode("utf-8")
    placed = mark if mark is not None and _is_place(data, *mark) else None
    first = max(0, placed[0] - BEFORE_BYTES) if placed else min(max(0, at), len(data))
    start = _floor(data, first)
    end = _floor(data, max(start + SHOWN_BYTES, placed[1] if placed else 0))
    inner = placed or (end, end)
    marked = data[inner[0] : inner[1]]
    return Part(
        data[start : inner[0]].decode("utf-8"),
        marked.decode("utf-8"),
        data[inner[1] : end].decode("utf-8"),
        start,
        end,
        len(data),
        hashlib.sha256(data).hexdigest(),
        f"sha256:{hashlib.sha256(marked).hexdigest()}" if placed else "",
        earlier=max(0, start - SHOWN_BYTES) if start else None,
        later=end if end < len(data) else None,
        is_off=mark is not None and placed is None,
    )


def _is_place(data: bytes, start: int, end: int) -> bool:
    if not 0 <= start < end <= len(data):
        return False
    return _floor(data, start) == start and _floor(data, end) == end


def _floor(data: bytes, place: int) -> int:
    """The nearest place between two characters, not after this one."""
    place = min(place, len(data))
    while 0 < place < len(data) and data[place] & 0xC0 == 0x80:
        place -= 1
    return place
