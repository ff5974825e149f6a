"""The network library's errors as ours."""

from __future__ import annotations

import ssl
from typing import Final

import httpcore

from engine.net.errors import HttpFailed
from engine.net.handshakes import ProxyRefused

NETWORK_ERRORS: Final = (
    httpcore.TimeoutException,
    httpcore.NetworkError,
    httpcore.ProtocolError,
    ProxyRefused,
)


def failure(error: Exception) -> HttpFailed:
    """What one of ``NETWORK_ERRORS`` means."""
    if isinstance(error, httpcore.TimeoutException):
        return HttpFailed("The server did not answer in time.", code="timeout")
    if isinstance(error, ProxyRefused):
        return HttpFailed("The proxy refused the connection.", code="proxy_refused")
    if isinstance(error, httpcore.ConnectError):
        if isinstance(error.__cause__ or error.__context__, ssl.SSLError):
            return HttpFailed("The secure connection failed.", code="tls_failed")
        return HttpFailed("The server cannot be reached.", code="connect_failed")
    return HttpFailed("The connection broke.", code="connect_failed")
