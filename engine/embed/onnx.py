"""Local sentence encoders on ONNX Runtime, as the catalogue describes them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from engine import native
from engine.embed.catalogue import ModelEntry
from engine.embed.liveness import Liveness
from engine.embed.pooling import mean_pool, unit_rows
from engine.embed.prompts import clean
from engine.embed.unigram import Unigram
from engine.encoder import Encoder, HubTokenizer, Mask, Values
from engine.errors import EmbeddingFailed
from engine.once import Once
from engine.types import Health, Matrix, Purpose, Signature

DEFAULT_TOKENS = 512
STATES = "last_hidden_state"
POOLED = "sentence_embedding"


@dataclass(frozen=True, slots=True)
class Use:
    """How a model is used. ``dim`` None is the full length; a shorter one must be in the entry.

    ``template`` is the version of the text that callers embed; it becomes part of the signature.
    ``max_tokens`` cuts texts earlier than the model would.
    """

    template: str
    threads: int = 1
    dim: int | None = None
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Parts:
    """What an encoder is made of: the graph, and how to open its tokenizer for so many tokens."""

    model: Path
    tokenizer: Callable[[int], Unigram | HubTokenizer]


@dataclass(frozen=True, slots=True)
class _Loaded:
    encoder: Encoder
    tokenizer: Unigram | HubTokenizer


class OnnxSource:
    """``EmbeddingSource`` and ``TokenVectorSource`` named ``local``. Thread-safe.

    ``load`` gives the parts; it is called on the first use.
    """

    def __init__(
        self,
        entry: ModelEntry,
        load: Callable[[], Parts],
        use: Use,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._entry = entry
        self._parts = load
        self._use = use
        self._dim = use.dim or entry.dimension
        if self._dim not in entry.dimensions:
            raise EmbeddingFailed(
                f"This model has no vectors of length {self._dim}.", code="model_load_failed"
            )
        most = entry.max_tokens or DEFAULT_TOKENS
        self._max_tokens = min(use.max_tokens or most, most)
        self._liveness = Liveness(clock)
        self._loaded = Once(self._load)

    @property
    def name(self) -> str:
        return "local"

    @property
    def model(self) -> str:
        return self._entry.id

    @property
    def use(self) -> Use:
        """How the model is used."""
        return self._use

    @property
    def signature(self) -> Signature:
        revision = f"{_short(self._entry)}+{self._use.template}"
        return Signature(self.name, self.model, revision, self._dim)

    @property
    def is_loaded(self) -> bool:
        """Whether the weights are in memory, so that the next call costs no loading."""
        return self._loaded.is_made

    def load(self) -> None:
        """Load now. Raises ``EmbeddingFailed`` (``model_not_installed``, ``model_load_failed``)."""
        self._loaded.get()

    def embed(self, texts: Sequence[str], *, purpose: Purpose) -> Matrix:
        """Unit vectors of texts; each is cut after the model's number of tokens."""
        if not texts:
            return np.empty((0, self._dim), np.float32)
        loaded = self._loaded.get()
        prompts = [self._entry.prompts.apply(clean(text), purpose=purpose) for text in texts]
        rows = np.empty((len(texts), self._entry.dimension), np.float32)
        output = POOLED if self._entry.pooling == "model" else STATES
        for places, values, mask in loaded.encoder.run(loaded.tokenizer.encode(prompts), output):
            rows[places] = self._pooled(values, mask)
        # The leading values of a vector are a vector of their own (Matryoshka), once scaled again.
        vectors = unit_rows(rows[:, : self._dim])
        self._liveness.succeeded()
        return vectors

    def token_vectors(self, texts: Sequence[str], *, purpose: Purpose) -> list[Matrix]:
        """One matrix for each text: a unit row for each of its tokens, in order.

        Rows are last hidden states, float32, shape ``(tokens, states)``. The tokens of the prompt
        and the special ones are left out, so a text without words gives no row.
        """
        if not texts:
            return []
        loaded = self._loaded.get()
        spans = [self._entry.prompts.span(clean(text), purpose=purpose) for text in texts]
        marked = loaded.tokenizer.marked([(span.prompt, span.start) for span in spans])
        found: dict[int, Matrix] = {}
        for places, values, _ in loaded.encoder.run([cut for cut, _ in marked], STATES):
            for row, place in enumerate(places):
                found[place] = unit_rows(values[row, marked[place][1]])
        self._liveness.succeeded()
        return [found[place] for place in range(len(texts))]

    def health(self) -> Health:
        """Embeds a word unless a text was embedded within the last minute."""
        detail = {"threads": self._use.threads, "loaded": self.is_loaded}
        return self._liveness.check(self, detail)

    def _pooled(self, values: Values, mask: Mask) -> Matrix:
        if self._entry.pooling == "model":
            return values
        return values[:, 0] if self._entry.pooling == "cls" else mean_pool(values, mask)

    def _load(self) -> _Loaded:
        parts = self._parts()
        try:
            tokenizer = parts.tokenizer(self._max_tokens)
            session = native.session(parts.model, threads=self._use.threads)
            encoder = Encoder(session, pad=tokenizer.pad, batch_texts=self._entry.batch_texts)
        except EmbeddingFailed:
            raise
        except Exception as error:  # the libraries raise their own, undocumented types
            raise EmbeddingFailed(
                f"The model cannot be loaded ({type(error).__name__}).", code="model_load_failed"
            ) from error
        return _Loaded(encoder, tokenizer)


def _short(entry: ModelEntry) -> str:
    """The revision for the signature; twelve digits of a commit are plenty."""
    return entry.revision if entry.is_packaged else entry.revision[:12]
