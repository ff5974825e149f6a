"""Errors the engine raises. Each carries a stable ``code``; edges translate it once."""

from __future__ import annotations


class EngineError(Exception):
    """Base of every engine error.

    ``code`` is stable and machine-readable; the message is for people and never holds a
    key, a URL or the text of a memory.
    """

    code = "engine_error"

    def __init__(self, message: str = "", *, code: str | None = None) -> None:
        super().__init__(message or self.code)
        if code is not None:
            self.code = code


class Unavailable(EngineError):
    """A tier cannot serve now; a lower one may."""

    code = "unavailable"


class InvalidQuery(EngineError):
    """The query is empty, too long, or its parameters are out of bounds.

    Codes: ``empty_query``, ``query_too_long``, ``too_many_terms``, ``too_common``,
    ``limit_out_of_range``, ``invalid_mode``, ``invalid_match_mode``.
    """

    code = "invalid_query"


class DimensionMismatch(EngineError):
    """A vector's length is not the dimension of its index."""

    code = "dimension_mismatch"


class ZeroVector(EngineError):
    """A vector of length zero (or not finite) has no direction to compare."""

    code = "zero_vector"


class UnknownPassage(EngineError):
    """A vector was offered for a passage that does not exist."""

    code = "unknown_passage"


class EmbeddingFailed(EngineError):
    """An embedding source failed.

    Codes: ``no_key``, ``rate_limited``, ``timeout``, ``request_failed``, ``invalid_response``,
    ``model_load_failed``, ``url_blocked``, ``unknown``.
    """

    code = "request_failed"


class RerankFailed(EngineError):
    """A reranker failed; the order it was given stands.

    Codes: ``no_key``, ``rate_limited``, ``timeout``, ``request_failed``, ``invalid_response``,
    ``model_load_failed``, ``url_blocked``.
    """

    code = "request_failed"


class GenerationFailed(EngineError):
    """A model that writes text failed, or wrote what was not asked for.

    Codes: those of outbound HTTP, ``invalid_response``, ``cut`` (an answer that has no end),
    ``bad_shape`` (JSON of another shape, or none).
    """

    code = "request_failed"


class BackendFailed(EngineError):
    """A memory backend failed.

    Codes: ``no_key``, ``rate_limited``, ``timeout``, ``unreachable``, ``request_failed``,
    ``invalid_response``, ``too_large``, ``url_blocked``, ``outside_vault`` (a path that would leave
    the folder), ``not_found`` (the place it is configured for is not there), ``not_registered``.
    """

    code = "request_failed"


class Cancelled(EngineError):
    """The caller asked a long operation to stop."""

    code = "cancelled"
