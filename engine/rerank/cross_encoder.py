"""A local cross-encoder: a model that reads query and passage together and scores the pair."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine import native
from engine.encoder import Encoder, EncoderFiles, HubTokenizer, Values
from engine.errors import EngineError, RerankFailed
from engine.once import Once
from engine.rerank.order import passage_text, reordered, sendable
from engine.types import Candidate, Health, Passage

FRESH_S = 60.0

Detail = dict[str, str | int | float | bool | None]


@dataclass(frozen=True, slots=True)
class _Loaded:
    encoder: Encoder
    tokenizer: HubTokenizer


@dataclass(frozen=True, slots=True)
class CrossEncoderUse:
    """How a model is used. ``batch_texts`` 1: weights whose activations are quantised together
    would score a pair differently beside others."""

    max_tokens: int = 512
    batch_texts: int = 1
    threads: int = 1


class CrossEncoder:
    """``Reranker`` named ``cross-encoder``. Thread-safe; loads itself on the first use.

    ``load`` gives the files. Scores are the logistic function of the model's logit: between 0 and
    1, in the model's order, no probability that anyone calibrated.
    """

    def __init__(
        self,
        model: str,
        load: Callable[[], EncoderFiles],
        use: CrossEncoderUse,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._model = model
        self._files = load
        self._use = use
        self._clock = clock
        self._loaded = Once(self._load)
        self._last_success: float | None = None

    @property
    def name(self) -> str:
        return "cross-encoder"

    @property
    def model(self) -> str:
        """The id of the model in the catalogue."""
        return self._model

    @property
    def is_loaded(self) -> bool:
        """Whether the weights are in memory, so that the next call costs no loading."""
        return self._loaded.is_made

    def load(self) -> None:
        """Load now. Raises ``RerankFailed`` (``model_not_installed``, ``model_load_failed``)."""
        self._loaded.get()

    def rerank(
        self, query: str, candidates: Sequence[tuple[Candidate, Passage]]
    ) -> list[Candidate]:
        """The candidates by the model's scores. Raises ``RerankFailed``."""
        if not candidates:
            return []
        scores = self._scores(query, [passage_text(passage) for _, passage in candidates])
        return reordered([candidate for candidate, _ in candidates], scores)

    def health(self) -> Health:
        """Ranks two words unless it ranked within the last minute. Never raises."""
        detail: Detail = {"reranker": self.name, "model": self._model, "loaded": self.is_loaded}
        last = self._last_success
        if last is None or self._clock() - last >= FRESH_S:
            try:
                self._scores("health", ["health", "other"])
            except RerankFailed as error:
                return Health(False, str(error), {**detail, "code": error.code})
            except Exception as error:  # a health check reports, whatever went wrong
                reason = f"Unexpected {type(error).__name__}."
                return Health(False, reason, {**detail, "code": "unknown"})
        return Health(True, detail={**detail, "loaded": self.is_loaded})

    def _scores(self, query: str, texts: Sequence[str]) -> list[float]:
        loaded = self._loaded.get()
        asked = sendable(query)
        pairs = loaded.tokenizer.pairs([(asked, text) for text in texts])
        logits = np.empty(len(texts), np.float64)
        for places, values, _ in loaded.encoder.run(pairs):
            logits[places] = _logits(values)
        if not np.isfinite(logits).all():
            raise RerankFailed("The model gave a value that is no number.", code="invalid_response")
        self._last_success = self._clock()
        scores: list[float] = (1 / (1 + np.exp(-np.clip(logits, -500, 500)))).tolist()
        return scores

    def _load(self) -> _Loaded:
        use = self._use
        try:
            files = self._files()
            tokenizer = HubTokenizer.open(files.tokenizer, use.max_tokens)
            session = native.session(files.model, threads=use.threads)
            encoder = Encoder(session, pad=tokenizer.pad, batch_texts=use.batch_texts)
            return _Loaded(encoder, tokenizer)
        except EngineError as error:
            raise RerankFailed(str(error), code=error.code) from error
        except Exception as error:  # the libraries raise their own, undocumented types
            raise RerankFailed(
                f"The model cannot be loaded ({type(error).__name__}).", code="model_load_failed"
            ) from error


def _logits(values: Values) -> npt.NDArray[np.float64]:
    """One number for each pair: the only one, or how far "relevant" is above "not"."""
    exact = values.astype(np.float64).reshape(len(values), -1)
    if exact.shape[1] == 2:
        difference: npt.NDArray[np.float64] = exact[:, 1] - exact[:, 0]
        return difference
    if exact.shape[1] != 1:
        raise RerankFailed("The model gives no single score.", code="model_load_failed")
    return exact[:, 0]
