"""The error registry: every error a service raises, with the code and status edges show.

Engine errors are translated here as well, so that an edge needs one table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from django.utils.translation import gettext as _

from engine.errors import EngineError, InvalidQuery
from engine.vault.errors import VaultError


class ServiceError(Exception):
    """Base: a stable ``code``, an HTTP ``status``, a message that is safe to show."""

    code = "error"
    status = 400

    def __init__(
        self, message: str, *, code: str | None = None, fields: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.fields = dict(fields or {})
        if code is not None:
            self.code = code


class Unauthorized(ServiceError):
    """No credential, or one that is not valid any more."""

    code, status = "unauthorized", 401


class Forbidden(ServiceError):
    """The caller is known but may not do this."""

    code, status = "forbidden", 403


class NotFound(ServiceError):
    """It does not exist, or another owner holds it."""

    code, status = "not_found", 404


class Conflict(ServiceError):
    """The change collides with what is there."""

    code, status = "conflict", 409


class TooLarge(ServiceError):
    """The body is over the limit."""

    code, status = "too_large", 413


class Invalid(ServiceError):
    """The input is well-formed but not acceptable; ``fields`` says where."""

    code, status = "invalid", 422


class TooMany(ServiceError):
    """Too many requests; try again later."""

    code, status = "rate_limited", 429


class TierDown(ServiceError):
    """A tier that was asked for by name cannot serve."""

    code, status = "unavailable", 503


def from_engine(error: EngineError) -> ServiceError:
    """The service error that tells an engine error to a client."""
    if isinstance(error, InvalidQuery):
        message = _query_message(error.code)
        return Invalid(message, code=error.code, fields={"query": message})
    if isinstance(error, VaultError):
        return _of_vault(error)
    return TierDown(str(error), code=error.code)


def _of_vault(error: VaultError) -> ServiceError:
    if error.code == "rate_limited" and error.reason == "passphrase":
        return TooMany(str(error))
    for kind, codes in _VAULT_CODES.items():
        if error.code in codes:
            return kind(str(error), code=error.code)
    return TierDown(str(error), code=error.code)


_VAULT_CODES: Final[Mapping[type[ServiceError], frozenset[str]]] = {
    Forbidden: frozenset({"wrong_passphrase", "device_only_vault", "url_policy"}),
    NotFound: frozenset({"not_authorized", "vault_not_found"}),
    Conflict: frozenset({"vault_locked", "source_changed", "cancelled"}),
    TooLarge: frozenset({"index_too_large"}),
    Invalid: frozenset({"invalid_utf8", "invalid_text", "unsupported_type", "weak_passphrase"}),
}
"""How what a vault refuses is told; everything else is a tier that cannot serve."""


def database_down() -> ServiceError:
    """What a client is told when the database itself refuses: it is locked, or the disk is full."""
    message = _("The database cannot be used now: it is busy, or its disk is full.")
    return TierDown(message, code="database_unavailable")


def _query_message(code: str) -> str:
    messages = {
        "empty_query": _("The query holds no word to search for."),
        "query_too_long": _("The query is longer than 1,024 bytes."),
        "too_many_terms": _("The query has more than 64 different words."),
        "too_common": _("More than 10,000 passages hold these words: add a rarer one."),
        "limit_out_of_range": _("The limit must be between 1 and 100."),
    }
    return messages.get(code, _("The query is not valid."))
