"""Our own errors, in the shape of the protocol that the client speaks."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from memory.errors import ServiceError


class Dialect(StrEnum):
    """Whose client it is."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"


class Refusal(Exception):
    """An answer that ends the matter."""

    def __init__(
        self, status: int, code: str, message: str, headers: tuple[tuple[bytes, bytes], ...] = ()
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.headers = headers


CHALLENGE: Final = ((b"www-authenticate", b"Bearer"),)


def no_key() -> Refusal:
    """No credential at all."""
    told = (
        "An API key of Memory Studio is needed (ms_…), as “Authorization: Bearer” or “x-api-key”."
    )
    return Refusal(401, "invalid_api_key", told, CHALLENGE)


def no_database() -> Refusal:
    """The database cannot be asked."""
    return Refusal(503, "database_unavailable", "The database cannot be used now.")


def no_object() -> Refusal:
    """The body cannot be read."""
    return Refusal(400, "invalid_json", "The body is not a JSON object.")


def no_model() -> Refusal:
    """It cannot be routed."""
    return Refusal(400, "model_missing", "The body names no model.")


_OPENAI: Final[Mapping[int, str]] = {
    401: "authentication_error",
    403: "permission_error",
    429: "rate_limit_error",
}
_ANTHROPIC: Final[Mapping[int, str]] = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
}


def refusal_of(error: ServiceError) -> Refusal:
    """What a service refused, as an answer."""
    headers = CHALLENGE if error.status == 401 else ()
    return Refusal(error.status, error.code, error.message, headers)


def error_body(refusal: Refusal, dialect: Dialect) -> dict[str, Any]:
    """The error as the client's library reads it."""
    if dialect is Dialect.ANTHROPIC:
        fallback = "api_error" if refusal.status >= 500 else "invalid_request_error"
        kind = _ANTHROPIC.get(refusal.status, fallback)
        error = {"type": kind, "message": refusal.message}
        return {"type": "error", "error": error, "request_id": f"req_{uuid.uuid4().hex}"}
    fallback = "server_error" if refusal.status >= 500 else "invalid_request_error"
    kind = _OPENAI.get(refusal.status, fallback)
    shape = {"message": refusal.message, "type": kind, "param": None, "code": refusal.code}
    return {"error": shape}


def error_event(refusal: Refusal, dialect: Dialect) -> bytes:
    """The error as the last event of a stream that broke off, whatever stood before it."""
    data = json.dumps(error_body(refusal, dialect), ensure_ascii=False)
    name = "event: error\n" if dialect is Dialect.ANTHROPIC else ""
    return f"\n\n{name}data: {data}\n\n".encode()
