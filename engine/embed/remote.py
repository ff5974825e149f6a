"""Embeddings from an OpenAI-compatible HTTP endpoint."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.embed.breaker import CircuitBreaker
from engine.embed.liveness import Liveness
from engine.embed.prompts import clean
from engine.embed.remote_answer import vectors
from engine.errors import EmbeddingFailed
from engine.net.client import HttpClient, Limits
from engine.net.errors import HttpFailed, UrlBlocked
from engine.net.policy import OPERATOR, UrlPolicy, check_url
from engine.types import Health, Matrix, Purpose, Signature

BATCH_TEXTS = 32
TIMEOUT_S = 10.0
OPERATION = "/embeddings"

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


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where to embed, with what, and as whom. The key is never shown."""

    base_url: str
    model: str
    api_key: str | None = field(default=None, repr=False)


def endpoint_url(
    base_url: str | None, model: str | None, policy: UrlPolicy = OPERATOR
) -> str | None:
    """The URL to call for a configured base URL; None when neither it nor a model is set.

    Raises ``EmbeddingFailed`` (``url_blocked``) when one of the two is missing or the policy
    refuses the URL.
    """
    base, chosen = (base_url or "").strip(), (model or "").strip()
    if not base and not chosen:
        return None
    if not base or not chosen:
        raise EmbeddingFailed("A base URL and a model go together.", code="url_blocked")
    url = base.rstrip("/")
    url = url if url.endswith(OPERATION) else url + OPERATION
    try:
        check_url(url, policy)
    except UrlBlocked as error:
        raise EmbeddingFailed(str(error), code="url_blocked") from error
    return url


class RemoteSource:
    """``EmbeddingSource`` named ``remote``. Thread-safe.

    ``dim`` is what an earlier run learnt; without it the first success tells. The URL
    and the model are the identity: they go into the signature, the URL as a hash. ``template`` as
    in ``OnnxSource``.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        template: str,
        client: HttpClient,
        dim: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        url = endpoint_url(endpoint.base_url, endpoint.model)
        if url is None:
            raise EmbeddingFailed("No remote embedding model is set.", code="no_key")
        self._url = url
        self._model = endpoint.model.strip()
        self._template = template
        self._client = client
        key = endpoint.api_key
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._dim = dim
        self._breaker = CircuitBreaker(clock=clock)
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
        address = hashlib.sha256(self._url.encode()).hexdigest()[:12]
        return Signature(self.name, self.model, f"{address}+{self._template}", self._dim)

    def embed(self, texts: Sequence[str], *, purpose: Purpose) -> Matrix:
        """Unit vectors of texts, in requests of at most 32."""
        if not texts:
            return np.empty((0, self._dim or 0), np.float32)
        self._breaker.check()
        cleaned = [clean(text) or " " for text in texts]
        try:
            parts = [
                self._batch(cleaned[start : start + BATCH_TEXTS], purpose)
                for start in range(0, len(cleaned), BATCH_TEXTS)
            ]
        except EmbeddingFailed as error:
            self._breaker.failed(error)
            raise
        self._breaker.succeeded()
        self._liveness.succeeded()
        return np.concatenate(parts)

    def health(self) -> Health:
        """Embeds a word unless a text was embedded within the last minute."""
        return self._liveness.check(self, {"dim": self._dim})

    def _batch(self, texts: Sequence[str], purpose: Purpose) -> Matrix:
        body = {"model": self._model, "input": list(texts)}
        try:
            answer = self._client.post_json(
                self._url, body, headers=self._headers, limits=LIMITS[purpose]
            )
        except UrlBlocked as error:
            raise EmbeddingFailed(str(error), code="url_blocked") from error
        except HttpFailed as error:
            code = CODES.get(error.code, "request_failed")
            raise EmbeddingFailed(str(error), code=code) from error
        found = vectors(answer, count=len(texts), dim=self._dim)
        self._dim = found.shape[1]
        return found
