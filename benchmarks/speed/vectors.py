"""Stand-in vectors: unit, 384 dimensions, clustered by topic and conversation.

No model runs: memories get their vector by number, a question gets one near the memory it is
about. A vector is a topic, a direction of its conversation and noise in every dimension; so two
memories of a conversation have a cosine of about 0.75, two of a topic 0.5.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence

import numpy as np

from benchmarks.speed.text import BLOCK, SEED, SESSION
from engine.types import Health, Matrix, Purpose, Signature, Vector

DIM = 384
TOPICS = 400
CONVERSATION = 0.7
NOISE = 0.7
NEAR = 0.6
"""Length of the noise between a memory and a question about it: a cosine of about 0.85."""


def block(start: int, size: int) -> Matrix:
    """Vectors of the memories from ``start`` on, which begins a block of ``text.BLOCK``."""
    rng = np.random.default_rng((SEED, 1, start // BLOCK))
    topics = _directions(np.random.default_rng((SEED, 2)), TOPICS)
    numbers = np.arange(start, start + size)
    sessions = numbers // SESSION
    order = np.unique(sessions)
    topic_of = np.random.default_rng((SEED, 3, start // BLOCK)).integers(TOPICS, size=order.size)
    place = np.searchsorted(order, sessions)
    conversations = topics[topic_of] + CONVERSATION * _directions(rng, order.size)
    return _unit(conversations[place] + NOISE * _directions(rng, size))


def near(vectors: Matrix, salt: int) -> Matrix:
    """Vectors of questions about memories with these vectors."""
    return _unit(vectors + NEAR * _directions(np.random.default_rng((SEED, 4, salt)), len(vectors)))


class StandInSource:
    """An ``EmbeddingSource`` that knows the vectors of the questions asked, so it takes no time.

    Other texts get a direction that depends on the text alone.
    """

    name = "local"
    model = "stand-in"

    def __init__(self, known: Mapping[str, Vector]) -> None:
        self.known = known

    @property
    def signature(self) -> Signature:
        return Signature(self.name, self.model, "1", DIM)

    def embed(self, texts: Sequence[str], *, purpose: Purpose) -> Matrix:
        """One unit row for each text."""
        del purpose
        if not texts:
            return np.empty((0, DIM), np.float32)
        return np.stack([self._vector(text) for text in texts])

    def health(self) -> Health:
        return Health(True)

    def _vector(self, text: str) -> Vector:
        vector = self.known.get(text)
        if vector is None:
            rng = np.random.default_rng(zlib.crc32(text.encode()))
            vector = _directions(rng, 1)[0]
        return vector


def _directions(rng: np.random.Generator, count: int) -> Matrix:
    return _unit(rng.standard_normal((count, DIM), dtype=np.float32))


def _unit(rows: Matrix) -> Matrix:
    unit: Matrix = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit
