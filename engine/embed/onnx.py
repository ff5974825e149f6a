"""Local sentence encoder on ONNX Runtime: multilingual-e5-small."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from engine import native
from engine.embed import catalogue, e5_repack
from engine.embed.liveness import Liveness
from engine.embed.pooling import mean_pool, unit_rows
from engine.embed.prompts import clean
from engine.errors import EmbeddingFailed
from engine.types import Health, Matrix, Purpose, Signature

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

BATCH_TEXTS = 16
BATCH_TOKENS = 2048
"""Padded tokens of one run: keeps a run short and its memory small when texts are long."""


@dataclass(frozen=True, slots=True)
class _Loaded:
    session: native.Session
    tokenizer: Tokenizer
    pad: int


class OnnxSource:
    """``EmbeddingSource`` named ``local``. Thread-safe; loads itself on the first use.

    ``template`` is the version of the text that callers embed; it becomes part of the signature.
    With ``threads=1`` each call works on its own thread, so that a query does not wait for a bulk
    run of another thread.
    """

    def __init__(
        self,
        models_dir: Path,
        *,
        template: str,
        threads: int = 1,
        progress: e5_repack.Progress = e5_repack.silent,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._entry = catalogue.find("multilingual-e5-small")
        self._models_dir = models_dir
        self._template = template
        self._threads = threads
        self._progress = progress
        self._liveness = Liveness(clock)
        self._lock = Lock()
        self._loaded: _Loaded | None = None

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
        return self._loaded is not None

    def load(self) -> None:
        """Load now. Raises ``EmbeddingFailed`` (``model_load_failed``)."""
        self._ready()

    def embed(self, texts: Sequence[str], *, purpose: Purpose) -> Matrix:
        """Unit vectors of texts; each is cut after 512 tokens."""
        if not texts:
            return np.empty((0, self._entry.dimension), np.float32)
        loaded = self._ready()
        prompts = [self._entry.prompts.apply(clean(text), purpose=purpose) for text in texts]
        encodings = loaded.tokenizer.encode_batch(prompts)
        rows = np.empty((len(texts), self._entry.dimension), np.float32)
        for batch in _batches([len(encoding.ids) for encoding in encodings]):
            rows[batch] = _run(loaded, [encodings[place] for place in batch])
        vectors = unit_rows(rows)
        self._liveness.succeeded()
        return vectors

    def health(self) -> Health:
        """Embeds a word unless a text was embedded within the last minute."""
        return self._liveness.check(self, {"threads": self._threads, "loaded": self.is_loaded})

    def _ready(self) -> _Loaded:
        loaded = self._loaded
        if loaded is not None:
            return loaded
        with self._lock:
            if self._loaded is None:
                self._loaded = self._load()
            return self._loaded

    def _load(self) -> _Loaded:
        folder = e5_repack.ensure(self._models_dir, self._entry, progress=self._progress)
        try:
            from tokenizers import Tokenizer

            tokenizer = Tokenizer.from_file(str(folder / e5_repack.TOKENIZER))
            session = native.session(folder / e5_repack.MODEL, threads=self._threads)
        except Exception as error:  # the libraries raise their own, undocumented types
            raise EmbeddingFailed(
                f"The model cannot be loaded ({type(error).__name__}).", code="model_load_failed"
            ) from error
        tokenizer.enable_truncation(self._entry.max_tokens or 512)
        pad = tokenizer.token_to_id("<pad>")
        return _Loaded(session, tokenizer, pad or 0)


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Places of texts of like length, so that little padding is computed."""
    batch: list[int] = []
    for place in sorted(range(len(lengths)), key=lengths.__getitem__):
        longest = lengths[place]
        if batch and (len(batch) >= BATCH_TEXTS or (len(batch) + 1) * longest > BATCH_TOKENS):
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


def _run(loaded: _Loaded, encodings: Sequence[Encoding]) -> Matrix:
    longest = max(len(encoding.ids) for encoding in encodings)
    # The 8-bit kernel takes rows in pairs and rounds a last single row otherwise; an even length
    # gives a text the same vector alone and in any batch.
    longest += longest % 2
    ids = np.full((len(encodings), longest), loaded.pad, np.int64)
    mask = np.zeros((len(encodings), longest), np.int64)
    for row, encoding in enumerate(encodings):
        ids[row, : len(encoding.ids)] = encoding.ids
        mask[row, : len(encoding.ids)] = 1
    (hidden,) = loaded.session.run(None, {"input_ids": ids, "attention_mask": mask})
    return mean_pool(hidden, mask)
