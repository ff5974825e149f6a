"""Embeddings from an HTTP server: OpenAI-compatible, Gemini, Cohere, Voyage, Jina or Azure."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from engine.embed.endpoint import Dialect, EmbeddingProtocol, Endpoint
from engine.embed.liveness import Liveness
from engine.embed.prompts import clean
from engine.embed.remote_dialects import dialect, endpoint_url
from engine.errors import EmbeddingFailed
from engine.net.breaker import CircuitBreaker
from engine.net.client import HttpClient, Limits
from engine.net.errors import HttpFailed, UrlBlocked
from engine.text.tokens import estimate_tokens
from engine.types import Health, Matrix, Purpose, Signature

__all__ = ["EmbeddingProtocol", "Endpoint", "RemoteSource", "endpoint_url"]

TIMEOUT_S = 10.0
TOO_LARGE = 413
TOKENS_SPARE = 0.75
"""Share of a service's token limit that a request uses: tokens are estimated."""

# Someone waits for a query: one attempt. Documents are embedded by jobs.
LIMITS = {
    Purpose.QUERY: Limits(connect_s=TIMEOUT_S, total_s=TIMEOUT_S, retries=0),
    Purpose.DOCUMENT: Limits(connect_s=TIMEOUT_S, total_s=TIMEOUT_S, retries=2),
}
CODES = {
    "auth_failed": "no_key",
    "rate_limited": "rate_limited",
    "timeout": "timeout",
    "invalid_response": "invalid_response",
    "response_too_large": "invalid_response",
}


class RemoteSource:
    """``EmbeddingSource`` named ``remote``. Thread-safe.

    ``dim`` is what an earlier run learnt; without it (and without ``dimensions`` in the endpoint)
    the first success tells. What decides the vectors goes into the signature: the model, and the
    URL with the prompts as a hash. ``template`` as in ``OnnxSource``.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        template: str,
        client: HttpClient,
        dim: int | None = None,
        limits: Mapping[Purpose, Limits] = LIMITS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._dialect: Dialect = dialect(endpoint)
        self._model = endpoint.model.strip()
        self._batch_tokens = int((endpoint.batch_tokens or 0) * TOKENS_SPARE)
        self._template = template
        self._client = client
        self._limits = limits
        self._dim = endpoint.dimensions or dim
        self._breaker: CircuitBreaker[EmbeddingFailed] = CircuitBreaker(clock=clock)
        self._liveness = Liveness(clock)

    @property
    def name(self) -> str:
        return "remote"

    @property
    def model(self) -> str:
        return self._model

    @property
    def signature(self) -> Signature:
        if self._dim is None:
            raise EmbeddingFailed(
                "The dimension is known after the first successful request.", code="unknown"
            )
        decisive = "\n".join(filter(None, (self._dialect.url, self._dialect.identity)))
        address = hashlib.sha256(decisive.encode()).hexdigest()[:12]
        return Signature(self.name, self.model, f"{address}+{self._template}", self._dim)

    def embed(self, texts: Sequence[str], *, purpose: Purpose) -> Matrix:
        """Unit vectors of texts, in requests of at most 32 and within the limits of the service."""
        if not texts:
            return np.empty((0, self._dim or 0), np.float32)
        self._breaker.check()
        cleaned = [clean(text) or " " for text in texts]
        try:
            parts = [self._batch(batch, purpose) for batch in self._batches(cleaned)]
        except EmbeddingFailed as error:
            self._breaker.failed(error)
            raise
        self._breaker.succeeded()
        self._liveness.succeeded()
        return np.concatenate(parts)

    def health(self) -> Health:
        """Embeds a word unless a text was embedded within the last minute."""
        return self._liveness.check(self, {"dim": self._dim})

    def _batches(self, texts: Sequence[str]) -> Iterator[list[str]]:
        """The texts in requests that the service takes, in order."""
        batch: list[str] = []
        tokens = 0
        for text in texts:
            cost = estimate_tokens(text) if self._batch_tokens else 0
            is_full = len(batch) >= self._dialect.batch_texts
            if batch and (is_full or tokens + cost > self._batch_tokens > 0):
                yield batch
                batch, tokens = [], 0
            batch.append(text)
            tokens += cost
        yield batch

    def _batch(self, texts: Sequence[str], purpose: Purpose) -> Matrix:
        try:
            return self._request(texts, purpose)
        except HttpFailed as error:
            if error.status == TOO_LARGE and len(texts) > 1:
                half = len(texts) // 2
                return np.concatenate(
                    [self._batch(texts[:half], purpose), self._batch(texts[half:], purpose)]
                )
            code = CODES.get(error.code, "request_failed")
            raise EmbeddingFailed(str(error), code=code) from error

    def _request(self, texts: Sequence[str], purpose: Purpose) -> Matrix:
        asked = self._dialect
        try:
            answer = self._client.post_json(
                asked.url,
                asked.body(texts, purpose),
                headers=asked.headers,
                limits=self._limits[purpose],
            )
        except UrlBlocked as error:
            raise EmbeddingFailed(str(error), code="url_blocked") from error
        found = asked.read(answer, count=len(texts), dim=self._dim)
        self._dim = found.shape[1]
        return found
