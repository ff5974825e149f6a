"""Filling the missing vectors of a vault's index, within a budget and while nothing changed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from engine.errors import EmbeddingFailed
from engine.net.errors import HttpFailed, UrlBlocked
from engine.protocols import EmbeddingSource
from engine.text.template import embedded_text
from engine.types import Purpose, Signature, Vector
from engine.vault.errors import VaultError
from engine.vault.generator import failed
from engine.vault.index import VaultIndex

BUDGET_S: Final = 300.0
SPENT: Final = "budget"
"""``reason`` of the error when the time is over."""
BATCH: Final = 16
CODES: Final = {
    "invalid_response": "embedding_invalid_response",
    "response_too_large": "embedding_invalid_response",
    "auth_failed": "auth_failed",
    "rate_limited": "rate_limited",
    "redirect_refused": "redirect_refused",
    "timeout": "timeout",
}
WITHOUT_CAUSE: Final = {
    "no_key": "auth_failed",
    "rate_limited": "rate_limited",
    "timeout": "timeout",
    "invalid_response": "embedding_invalid_response",
    "model_load_failed": "model_not_installed",
    "model_not_installed": "model_not_installed",
    "url_blocked": "url_policy",
}


def fill(
    index: VaultIndex,
    source: EmbeddingSource,
    *,
    check: Callable[[], None],
    budget_s: float = BUDGET_S,
    clock: Callable[[], float] = time.monotonic,
) -> int:
    """Embed what has no vector yet; how many chunks.

    ``check`` is called before and after each batch and raises when the work is not to go on;
    finished batches stay. Raises ``VaultError``: ``timeout`` when the budget is spent, the codes
    of services, ``index_too_large``.
    """
    deadline = clock() + budget_s
    waiting = index.missing(signature_of(source))
    for start in range(0, len(waiting), BATCH):
        check()
        if clock() >= deadline:
            raise VaultError(
                f"The time for embedding is over; {len(waiting) - start} chunks are left.",
                code="timeout",
                reason=SPENT,
            )
        batch = waiting[start : start + BATCH]
        texts = [embedded_text(chunk.passage.title, chunk.passage.body) for chunk in batch]
        try:
            vectors = source.embed(texts, purpose=Purpose.DOCUMENT)
        except EmbeddingFailed as error:
            raise told(error) from error
        check()
        index.put_vectors(source.signature, batch, vectors)
    return len(waiting)


def query_vector(source: EmbeddingSource, text: str) -> Vector:
    """The vector of a query. Raises ``VaultError``."""
    try:
        vector: Vector = source.embed([text], purpose=Purpose.QUERY)[0]
    except EmbeddingFailed as error:
        raise told(error) from error
    return vector


def signature_of(source: EmbeddingSource) -> Signature:
    """The space of a source, which a remote one only knows after an answer."""
    try:
        return source.signature
    except EmbeddingFailed:
        query_vector(source, "dimension")
        return source.signature


def told(error: EmbeddingFailed) -> VaultError:
    """The error of a vault for one of an embedding source."""
    if isinstance(error.__cause__, UrlBlocked | HttpFailed):
        return failed(error.__cause__, CODES)
    code = WITHOUT_CAUSE.get(error.code, "upstream_error")
    return VaultError(str(error), code=code, reason=error.code)
