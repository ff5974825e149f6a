"""Reranking by an HTTP service: the second seed's shape, Cohere's, Jina's, Voyage's and TEI's."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from engine.errors import RerankFailed
from engine.net.breaker import CircuitBreaker
from engine.net.client import HttpClient, Limits
from engine.net.errors import HttpFailed, UrlBlocked
from engine.net.policy import OPERATOR, UrlPolicy, check_url
from engine.net.strict_json import Json
from engine.rerank import remote_answer
from engine.rerank.order import passage_text, reordered, sendable
from engine.types import Candidate, Health, Passage

TIMEOUT_S = 5.0
LIMITS = Limits(connect_s=TIMEOUT_S, total_s=TIMEOUT_S, retries=0)
"""Someone waits: one attempt of five seconds, as in the first seed."""

TEI_BATCH = 32
"""Texts of one request that a TEI server takes by default."""

FRESH_S = 60.0
VERSIONED = re.compile(r"/v\d+$")
CODES = {
    "auth_failed": "no_key",
    "rate_limited": "rate_limited",
    "timeout": "timeout",
    "invalid_response": "invalid_response",
    "response_too_large": "invalid_response",
}


class RerankProtocol(StrEnum):
    """How a service is asked. ``seed``: the URL as given, and every candidate in the answer."""

    SEED = "seed"
    COHERE = "cohere"
    JINA = "jina"
    VOYAGE = "voyage"
    TEI = "tei"


@dataclass(frozen=True, slots=True)
class RerankEndpoint:
    """Where to rerank, with what, and as whom. The key is never shown. TEI needs no model."""

    base_url: str
    model: str = ""
    api_key: str | None = field(default=None, repr=False)
    protocol: RerankProtocol = RerankProtocol.SEED


def rerank_url(base_url: str, protocol: RerankProtocol, policy: UrlPolicy = OPERATOR) -> str:
    """The URL to call. Raises ``RerankFailed`` (``url_blocked``) when the policy refuses it.

    The seed's is the operation itself; the others' get ``/rerank`` (all but TEI also
    ``/v1``) unless they have it.
    """
    url = base_url.strip()
    if protocol is not RerankProtocol.SEED:
        url = url.rstrip("/")
        if not url.endswith("/rerank"):
            is_whole = protocol is RerankProtocol.TEI or VERSIONED.search(url)
            url += "/rerank" if is_whole else "/v1/rerank"
    try:
        check_url(url, policy)
    except UrlBlocked as error:
        raise RerankFailed(str(error), code="url_blocked") from error
    return url


class RemoteReranker:
    """``Reranker`` named ``remote``. Thread-safe. Building one asks nothing.

    Raises ``RerankFailed`` when the URL is not allowed or the model is missing.
    """

    def __init__(
        self,
        endpoint: RerankEndpoint,
        *,
        client: HttpClient,
        limits: Limits = LIMITS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._protocol = endpoint.protocol
        self._url = rerank_url(endpoint.base_url, endpoint.protocol)
        self._model = endpoint.model.strip()
        if not self._model and endpoint.protocol is not RerankProtocol.TEI:
            raise RerankFailed("No rerank model is set.", code="no_key")
        key = endpoint.api_key
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._client = client
        self._limits = limits
        self._clock = clock
        self._breaker: CircuitBreaker[RerankFailed] = CircuitBreaker(clock=clock)
        self._last_success: float | None = None

    @property
    def name(self) -> str:
        return "remote"

    @property
    def model(self) -> str:
        """The model as configured; empty where the server has only one."""
        return self._model

    def rerank(
        self, query: str, candidates: Sequence[tuple[Candidate, Passage]]
    ) -> list[Candidate]:
        """The candidates by the service's scores. Raises ``RerankFailed``."""
        if not candidates:
            return []
        scores = self._scores(sendable(query), [passage_text(passage) for _, passage in candidates])
        return reordered([candidate for candidate, _ in candidates], scores)

    def health(self) -> Health:
        """Ranks two words unless a request succeeded within the last minute. Never raises."""
        detail = {"reranker": self.name, "model": self._model, "protocol": str(self._protocol)}
        last = self._last_success
        if last is None or self._clock() - last >= FRESH_S:
            try:
                self._scores("health", ["health", "other"])
            except RerankFailed as error:
                return Health(False, str(error), {**detail, "code": error.code})
        return Health(True, detail=detail)

    def _scores(self, query: str, texts: Sequence[str]) -> list[float]:
        self._breaker.check()
        size = TEI_BATCH if self._protocol is RerankProtocol.TEI else len(texts)
        scores: list[float] = []
        try:
            for start in range(0, len(texts), size):
                scores.extend(self._request(query, texts[start : start + size]))
        except RerankFailed as error:
            self._breaker.failed(error)
            raise
        self._breaker.succeeded()
        self._last_success = self._clock()
        return scores

    def _request(self, query: str, texts: Sequence[str]) -> list[float]:
        try:
            answer = self._client.post_json(
                self._url, self._body(query, texts), headers=self._headers, limits=self._limits
            )
        except UrlBlocked as error:
            raise RerankFailed(str(error), code="url_blocked") from error
        except HttpFailed as error:
            code = CODES.get(error.code, "request_failed")
            raise RerankFailed(str(error), code=code) from error
        return scores_of(answer, protocol=self._protocol, count=len(texts))

    def _body(self, query: str, texts: Sequence[str]) -> Mapping[str, object]:
        if self._protocol is RerankProtocol.TEI:
            return {"query": query, "texts": list(texts), "truncate": True}
        # The answer may be cut to so many: every candidate is asked for.
        most = "top_k" if self._protocol is RerankProtocol.VOYAGE else "top_n"
        body = {"model": self._model, "query": query, "documents": list(texts)}
        return {**body, most: len(texts)}


def scores_of(answer: Json, *, protocol: RerankProtocol, count: int) -> list[float]:
    """One score for each candidate, by place. Raises ``RerankFailed`` (``invalid_response``)."""
    if protocol is RerankProtocol.SEED:
        return remote_answer.results(answer, count=count)
    if protocol is RerankProtocol.TEI:
        return remote_answer.bare_scores(answer, count=count)
    if protocol is RerankProtocol.VOYAGE:
        return remote_answer.listed_data(answer, count=count)
    return remote_answer.lenient_results(answer, count=count)
