"""Cheap stand-ins for embedding sources, for tests of everything around them."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence

import numpy as np

from engine.errors import EmbeddingFailed
from engine.types import Health, Matrix, Purpose, Signature, Vector

WORD = re.compile(r"\w+")
BIAS = 0.05
"""Length of the constant part, so that a text without any word has a direction too."""


class FakeEmbedding:
    """Hashed words and character bigrams: texts that share words or characters are near.

    Deterministic across processes, and no different for queries and documents. ``calls`` lists
    what was embedded, in order.
    """

    def __init__(
        self, *, dim: int = 64, name: str = "local", model: str = "fake", revision: str = "1"
    ) -> None:
        self.calls: list[tuple[Purpose, tuple[str, ...]]] = []
        self._signature = Signature(name, model, revision, dim)

    @property
    def name(self) -> str:
        return self._signature.source

    @property
    def model(self) -> str:
        return self._signature.model

    @property
    def signature(self) -> Signature:
        return self._signature

    def embed(self, texts: Sequence[str], *, purpose: Purpose) -> Matrix:
        """One unit row for each text."""
        self.calls.append((purpose, tuple(texts)))
        if not texts:
            return np.empty((0, self._signature.dim), np.float32)
        return np.stack([self._vector(text) for text in texts])

    def health(self) -> Health:
        return Health(True, detail={"source": self.name, "model": self.model})

    def _vector(self, text: str) -> Vector:
        row = np.zeros(self._signature.dim, np.float64)
        row[0] = BIAS
        for feature, weight in _features(text.casefold()):
            code = zlib.crc32(feature.encode("utf-8", "surrogatepass"))
            row[code % row.size] += weight if code & 0x10000 else -weight
        length = float(np.linalg.norm(row))
        if length < BIAS:  # every feature met its opposite
            row[0], length = 1.0, 1.0
        vector: Vector = (row / length).astype(np.float32)
        return vector


class FailingEmbedding(FakeEmbedding):
    """Raises ``EmbeddingFailed`` with a chosen code while ``is_failing`` is set."""

    def __init__(self, code: str = "request_failed", *, dim: int = 64) -> None:
        super().__init__(dim=dim)
        self.code = code
        self.is_failing = True

    def embed(self, texts: Sequence[str], *, purpose: Purpose) -> Matrix:
        """Fails while it is told to."""
        if self.is_failing:
            self.calls.append((purpose, tuple(texts)))
            raise EmbeddingFailed("The fake source was told to fail.", code=self.code)
        return super().embed(texts, purpose=purpose)

    def health(self) -> Health:
        if self.is_failing:
            return Health(False, "The fake source was told to fail.", {"code": self.code})
        return super().health()


def _features(text: str) -> Iterator[tuple[str, float]]:
    """Words weigh 1; bigrams of characters carry inflections and unspaced scripts."""
    for word in WORD.findall(text):
        yield f"w{word}", 1.0
        for start in range(len(word) - 1):
            yield f"c{word[start : start + 2]}", 0.5
