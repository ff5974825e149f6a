"""The ways to ask a server for embeddings: OpenAI-compatible, Gemini, and those of services."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from engine.embed import remote_answer
from engine.embed.endpoint import (
    BATCH_TEXTS,
    Dialect,
    EmbeddingProtocol,
    Endpoint,
    batch_of,
    bearer,
)
from engine.embed.prompts import Prompts
from engine.embed.remote_prompts import prompts_for
from engine.embed.remote_services import Cohere, Jina, Voyage
from engine.errors import EmbeddingFailed
from engine.net.errors import UrlBlocked
from engine.net.policy import OPERATOR, UrlPolicy, check_url
from engine.net.strict_json import Json
from engine.types import Matrix, Purpose

COMPATIBLE_OPERATION = "/embeddings"
COHERE_OPERATION, COHERE_VERSION = "/embed", "/v2"
SINGLE, BATCH = ":embedContent", ":batchEmbedContents"
TASKS = {Purpose.QUERY: "RETRIEVAL_QUERY", Purpose.DOCUMENT: "RETRIEVAL_DOCUMENT"}


def dialect(endpoint: Endpoint, policy: UrlPolicy = OPERATOR) -> Dialect:
    """How an endpoint is asked. Raises ``EmbeddingFailed`` (``no_key``, ``url_blocked``)."""
    url = endpoint_url(
        endpoint.base_url,
        endpoint.model,
        policy,
        protocol=endpoint.protocol,
        is_operation=endpoint.is_operation,
    )
    if url is None:
        raise EmbeddingFailed("No remote embedding model is set.", code="no_key")
    return _DIALECTS[endpoint.protocol](endpoint, url)


def endpoint_url(
    base_url: str | None,
    model: str | None,
    policy: UrlPolicy = OPERATOR,
    *,
    protocol: EmbeddingProtocol = EmbeddingProtocol.COMPATIBLE,
    is_operation: bool = False,
) -> str | None:
    """The URL to call for a configured base URL; None when neither it nor a model is set.

    A URL that already names the operation is called as it is. Raises ``EmbeddingFailed``
    (``url_blocked``) when one of the two is missing or the policy refuses the URL.
    """
    base, chosen = (base_url or "").strip(), (model or "").strip()
    if not base and not chosen:
        return None
    if not base or not chosen:
        raise EmbeddingFailed("A base URL and a model go together.", code="url_blocked")
    url = base if is_operation else _operation(base.rstrip("/"), chosen, protocol)
    try:
        check_url(url, policy)
    except UrlBlocked as error:
        raise EmbeddingFailed(str(error), code="url_blocked") from error
    return url


def _operation(url: str, model: str, protocol: EmbeddingProtocol) -> str:
    if protocol is EmbeddingProtocol.GEMINI:
        return url if url.endswith((SINGLE, BATCH)) else f"{url}/{_resource(model)}{BATCH}"
    if protocol is EmbeddingProtocol.COHERE:
        if url.endswith(COHERE_OPERATION):
            return url
        return url.removesuffix(COHERE_VERSION) + COHERE_VERSION + COHERE_OPERATION
    return url if url.endswith(COMPATIBLE_OPERATION) else url + COMPATIBLE_OPERATION


def _resource(model: str) -> str:
    """The name of a model as Gemini's API writes it."""
    return f"models/{model.removeprefix('models/')}"


class _Compatible:
    """``{model, input[, dimensions]}`` with a bearer key; items of the answer carry an index."""

    def __init__(self, endpoint: Endpoint, url: str) -> None:
        self.url = url
        self.headers: Mapping[str, str] = bearer(endpoint.api_key)
        self.batch_texts = batch_of(endpoint)
        self._model = endpoint.model.strip()
        self._dimensions = endpoint.dimensions
        self._prompts = endpoint.prompts or prompts_for(self._model)
        # A model that reads plain text adds nothing, so that the URL alone tells it apart.
        self.identity = _templates(self._prompts)

    def body(self, texts: Sequence[str], purpose: Purpose) -> Mapping[str, object]:
        body: dict[str, object] = {
            "model": self._model,
            "input": [self._prompts.apply(text, purpose=purpose) for text in texts],
        }
        # Servers refuse the field for models that cannot shorten their vectors.
        if self._dimensions is not None:
            body["dimensions"] = self._dimensions
        return body

    def read(self, answer: Json, *, count: int, dim: int | None) -> Matrix:
        return remote_answer.vectors(answer, count=count, dim=dim)


class _Azure(_Compatible):
    """The same with the key in a header of its own."""

    def __init__(self, endpoint: Endpoint, url: str) -> None:
        super().__init__(endpoint, url)
        key = endpoint.api_key
        self.headers = {"api-key": key} if key else {}


class _Gemini:
    """``embedContent`` (one text a request) or ``batchEmbedContents``, by the URL."""

    def __init__(self, endpoint: Endpoint, url: str) -> None:
        self.url = url
        key = endpoint.api_key
        self.headers: Mapping[str, str] = {"x-goog-api-key": key} if key else {}
        self._is_single = url.endswith(SINGLE)
        self.batch_texts = 1 if self._is_single else BATCH_TEXTS
        self._model = _resource(endpoint.model.strip())
        self._dimensions = endpoint.dimensions
        self._prompts = endpoint.prompts or prompts_for(self._model)
        # A model that reads a prompt takes no task type.
        self._has_task = self._prompts == Prompts()
        self.identity = "task types" if self._has_task else _templates(self._prompts)

    def body(self, texts: Sequence[str], purpose: Purpose) -> Mapping[str, object]:
        requests = [self._one(text, purpose) for text in texts]
        return requests[0] if self._is_single else {"requests": requests}

    def read(self, answer: Json, *, count: int, dim: int | None) -> Matrix:
        read = remote_answer.gemini_vector if self._is_single else remote_answer.gemini_vectors
        return read(answer, count=count, dim=dim)

    def _one(self, text: str, purpose: Purpose) -> dict[str, object]:
        prompt = self._prompts.apply(text, purpose=purpose)
        one: dict[str, object] = {"model": self._model, "content": {"parts": [{"text": prompt}]}}
        if self._has_task:
            one["taskType"] = TASKS[purpose]
        if self._dimensions is not None:
            one["outputDimensionality"] = self._dimensions
        return one


def _templates(prompts: Prompts) -> str:
    return "" if prompts == Prompts() else f"{prompts.query}\n{prompts.document}"


_DIALECTS: Final[Mapping[EmbeddingProtocol, Callable[[Endpoint, str], Dialect]]] = {
    EmbeddingProtocol.COMPATIBLE: _Compatible,
    EmbeddingProtocol.AZURE: _Azure,
    EmbeddingProtocol.GEMINI: _Gemini,
    EmbeddingProtocol.COHERE: Cohere,
    EmbeddingProtocol.VOYAGE: Voyage,
    EmbeddingProtocol.JINA: Jina,
}
