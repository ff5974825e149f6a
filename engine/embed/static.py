"""Static embeddings: the mean of the vectors of a text's tokens (model2vec layout).

``model.safetensors`` holds ``embeddings`` ``(rows, dim)``, and may hold ``weights`` (one for each
token) and ``mapping`` (the row of each token, where tokens share rows). ``tokenizer.json`` cuts the
text; where there is none, ``vocab.txt`` with one piece a line does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from engine.embed import safetensors, wordpiece
from engine.embed.catalogue import ModelEntry
from engine.embed.liveness import Liveness
from engine.embed.pooling import SMALLEST_NORM, unit_rows
from engine.embed.prompts import clean
from engine.errors import EmbeddingFailed
from engine.once import Once
from engine.types import Health, Matrix, Purpose, Signature, Vector

MODEL = "model.safetensors"
TOKENIZER = "tokenizer.json"
VOCABULARY = "vocab.txt"

Cut = Callable[[Sequence[str]], list[list[int]]]
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Table:
    """Vectors of tokens. ``weights`` and ``mapping`` have one value for each token id."""

    rows: Floats
    weights: Floats | None = None
    mapping: npt.NDArray[np.int64] | None = None

    @property
    def size(self) -> int:
        """How many token ids have a vector."""
        return len(self.rows if self.mapping is None else self.mapping)

    def pool(self, ids: Sequence[int]) -> Vector:
        """Mean of the weighted vectors of tokens; zeros when no id has one. Not normalised."""
        known = np.array([place for place in ids if 0 <= place < self.size], np.int64)
        if not known.size:
            return np.zeros(self.rows.shape[1], np.float32)
        rows = self.rows[known if self.mapping is None else self.mapping[known]]
        if self.weights is not None:
            rows = rows * self.weights[known][:, None]
        mean: Vector = rows.mean(axis=0, dtype=np.float32)
        return mean


@dataclass(frozen=True, slots=True)
class _Loaded:
    table: Table
    cut: Cut
    neutral: Vector


class StaticSource:
    """``EmbeddingSource`` named ``static``: no network is run, a text costs microseconds.

    A text without a known token gets the mean of all vectors: near nothing, and no error.
    ``load`` gives the folder of the model; it is called on the first use. Thread-safe.
    """

    def __init__(
        self,
        entry: ModelEntry,
        load: Callable[[], Path],
        *,
        template: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._entry = entry
        self._folder = load
        self._template = template
        self._liveness = Liveness(clock)
        self._loaded = Once(self._load)

    @property
    def name(self) -> str:
        return "static"

    @property
    def model(self) -> str:
        return self._entry.id

    @property
    def signature(self) -> Signature:
        revision = f"{self._entry.revision[:12]}+{self._template}"
        return Signature(self.name, self.model, revision, self._entry.dimension)

    @property
    def is_loaded(self) -> bool:
        """Whether the vectors are in memory, so that the next call costs no loading."""
        return self._loaded.is_made

    def load(self) -> None:
        """Load now. Raises ``EmbeddingFailed`` (``model_not_installed``, ``model_load_failed``)."""
        self._loaded.get()

    def embed(self, texts: Sequence[str], *, purpose: Purpose) -> Matrix:
        """Unit vectors of texts; each is cut after the model's number of tokens."""
        if not texts:
            return np.empty((0, self._entry.dimension), np.float32)
        loaded = self._loaded.get()
        prompts = [self._entry.prompts.apply(clean(text), purpose=purpose) for text in texts]
        most = self._entry.max_tokens
        rows = np.stack([loaded.table.pool(ids[:most]) for ids in loaded.cut(prompts)])
        rows[np.linalg.norm(rows, axis=1) <= SMALLEST_NORM] = loaded.neutral
        vectors = unit_rows(rows)
        self._liveness.succeeded()
        return vectors

    def health(self) -> Health:
        """Embeds a word unless a text was embedded within the last minute."""
        return self._liveness.check(self, {"threads": 1, "loaded": self.is_loaded})

    def _load(self) -> _Loaded:
        folder = self._folder()
        table = read_table(folder / MODEL)
        if table.rows.shape[1] != self._entry.dimension:
            raise EmbeddingFailed(
                "The vectors are not as long as the catalogue says.", code="model_load_failed"
            )
        return _Loaded(table, _cutter(folder), table.rows.mean(axis=0, dtype=np.float32))


def read_table(path: Path) -> Table:
    """The vectors of a model2vec file. Raises ``EmbeddingFailed`` (``model_load_failed``)."""
    tensors = safetensors.read(path)
    rows, weights, mapping = (tensors.get(name) for name in ("embeddings", "weights", "mapping"))
    if rows is None or rows.ndim != 2 or not rows.size:
        raise EmbeddingFailed("The weights have no table of vectors.", code="model_load_failed")
    table = Table(
        rows.astype(np.float32),
        None if weights is None else weights.astype(np.float32).reshape(-1),
        None if mapping is None else mapping.astype(np.int64).reshape(-1),
    )
    is_short = table.weights is not None and len(table.weights) < table.size
    is_beyond = table.mapping is not None and bool(
        (table.mapping < 0).any() or (table.mapping >= len(rows)).any()
    )
    if is_short or is_beyond:
        raise EmbeddingFailed("The parts of the weights do not fit.", code="model_load_failed")
    return table


def _cutter(folder: Path) -> Cut:
    try:
        if (folder / TOKENIZER).is_file():
            return _own_tokenizer(folder / TOKENIZER)
        pieces = (folder / VOCABULARY).read_text(encoding="utf-8").splitlines()
    except Exception as error:  # the library raises its own, undocumented types
        raise EmbeddingFailed(
            f"The tokenizer cannot be read ({type(error).__name__}).", code="model_load_failed"
        ) from error
    return _bare({piece: place for place, piece in enumerate(pieces)})


def _own_tokenizer(path: Path) -> Cut:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    unknown = getattr(tokenizer.model, "unk_token", None)
    skipped = tokenizer.token_to_id(unknown) if isinstance(unknown, str) else None

    def cut(texts: Sequence[str]) -> list[list[int]]:
        encodings = tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [[place for place in encoding.ids if place != skipped] for encoding in encodings]

    return cut


def _bare(vocabulary: Mapping[str, int]) -> Cut:
    skipped = vocabulary.get(wordpiece.UNKNOWN)

    def cut(texts: Sequence[str]) -> list[list[int]]:
        found = (wordpiece.token_ids(text, vocabulary) for text in texts)
        return [[place for place in ids if place != skipped] for ids in found]

    return cut
