"""Requests as an ASGI server hands them over: what several applications read of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

from django.conf import settings
from django.http.request import split_domain_port, validate_host

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


def header(scope: Scope, name: bytes) -> str:
    """The first header of this name, or an empty text."""
    found: Iterable[bytes] = (value for key, value in scope["headers"] if key == name)
    return next(iter(found), b"").decode("latin-1")


def bearer(scope: Scope) -> str:
    """The secret of the header ``Authorization``, or an empty text."""
    kind, _space, secret = header(scope, b"authorization").strip().partition(" ")
    return secret.strip() if kind.lower() == "bearer" else ""


def is_own_host(host: str) -> bool:
    """Whether a host is one of the studio's: a page that a browser was led to is not."""
    domain, _port = split_domain_port(host)
    return bool(domain) and validate_host(domain, settings.ALLOWED_HOSTS)
