"""Errors of outbound HTTP. Messages never hold a URL, a header or a body."""

from __future__ import annotations

from engine.errors import EngineError

PASSING = frozenset({"connect_failed", "timeout"})
RETRIED = frozenset({429, 500, 502, 503, 504})


class UrlBlocked(EngineError):
    """The policy refuses a URL or the address its host resolves to.

    ``reason`` is one of ``malformed``, ``scheme``, ``bad_character``, ``bad_host``, ``bad_port``,
    ``noncanonical_ip``, ``credentials_in_url``, ``query_in_url``, ``fragment_in_url``,
    ``https_required``, ``blocked_address``, ``private_address``, ``not_loopback``,
    ``name_resolves_to_loopback``, ``loopback_name_not_loopback``, ``dns_failed``,
    ``bad_proxy``.
    """

    code = "url_blocked"

    def __init__(self, reason: str) -> None:
        super().__init__(f"The address is not allowed ({reason}).")
        self.reason = reason

    @property
    def is_invalid(self) -> bool:
        """Whether the text is no usable URL at all, rather than one that is refused."""
        return self.reason in {"malformed", "scheme", "bad_character", "bad_host", "bad_port"}


class HttpFailed(EngineError):
    """A request got no usable answer.

    Codes: ``auth_failed``, ``rate_limited``, ``upstream_error``, ``redirect_refused``,
    ``timeout``, ``connect_failed``, ``tls_failed``, ``proxy_refused``, ``response_too_large``,
    ``invalid_response``. ``status`` is None when there was no answer; ``retry_after`` is what the
    server asked for, unread.
    """

    code = "upstream_error"

    def __init__(
        self,
        message: str,
        *,
        code: str,
        status: int | None = None,
        retry_after: str | None = None,
    ) -> None:
        super().__init__(message, code=code)
        self.status = status
        self.retry_after = retry_after

    @property
    def is_retried(self) -> bool:
        """Whether the same request may succeed a little later."""
        return self.code in PASSING or self.status in RETRIED
