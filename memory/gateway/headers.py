"""Which headers travel on: to the upstream, and back to the client."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from engine.chat.callers import NO_MEMORY_HEADERS, SESSION_HEADER

HOP: Final = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
KEPT_HERE: Final = HOP | {
    "accept-encoding",
    "api-key",
    "authorization",
    "content-encoding",
    "content-length",
    "cookie",
    "expect",
    "forwarded",
    "host",
    "origin",
    "referer",
    "via",
    "x-api-key",
    "x-real-ip",
    SESSION_HEADER,
    *NO_MEMORY_HEADERS,
}
"""Our own credentials and words, and what is about the connection to us."""
KEPT_BACK: Final = HOP | {"alt-svc", "date", "server", "set-cookie", "strict-transport-security"}
OURS: Final = "x-memory-"
BROWSER: Final = ("sec-", "x-forwarded-", OURS)

Headers = list[tuple[bytes, bytes]]


def upstream_headers(given: Mapping[str, str], credential: Mapping[str, str]) -> dict[str, str]:
    """What an upstream is told: the client's headers, and our credential there.

    Of the credential's headers the version of a protocol is a fallback for the client's own.
    """
    sent = {
        name.title(): value
        for name, value in given.items()
        if name not in KEPT_HERE
        and not name.startswith(BROWSER)
        and value.isascii()
        and value.isprintable()
    }
    for name, value in credential.items():
        if name.lower() == "anthropic-version":
            sent.setdefault(name.title(), value)
        else:
            sent[name.title()] = value
    return sent


def client_headers(given: Iterable[tuple[bytes, bytes]], receipt: Headers) -> Headers:
    """What the client is told: the upstream's headers, and ours about memory."""
    kept = [
        (name, value)
        for name, value in given
        if (text := name.decode("latin-1")) not in KEPT_BACK and not text.startswith(OURS)
    ]
    return [*kept, *receipt]
