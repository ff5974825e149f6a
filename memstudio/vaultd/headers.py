"""Which headers travel from a web to vaultd and back, and what a web says of its client."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from memstudio.bridge import Headers, Scope
from memstudio.vaultd.proof import proof

OURS: Final = b"x-memory-studio-"
"""What begins so is between our processes: a client's is dropped."""
PROOF: Final = OURS + b"proof"
CLIENT: Final = OURS + b"client"
SCHEME: Final = OURS + b"scheme"
REFUSED: Final = OURS + b"refused"
"""Of an answer: the door was not opened."""
HOP: Final = frozenset(
    {
        b"connection",
        b"expect",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
"""What is about one connection."""
OF_A_SERVER: Final = frozenset({b"date", b"server"})
"""Each server writes its own."""


def onward(scope: Scope, *, has_body: bool) -> Headers:
    """What vaultd is told: the client's headers as they are, our proof, and who the client is."""
    client = (scope.get("client") or ("",))[0]
    sent = [*_kept(scope["headers"]), (PROOF, proof()), (CLIENT, client.encode())]
    sent.append((SCHEME, scope.get("scheme", "http").encode()))
    if has_body and all(name != b"content-length" for name, _value in sent):
        sent.append((b"transfer-encoding", b"chunked"))
    return sent


def back(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """What the client is told."""
    given = [(name.lower(), value) for name, value in headers]
    return [entry for entry in _kept(given) if entry[0] not in OF_A_SERVER]


def arrived(scope: Scope) -> Scope:
    """A request whose proof is right, as if the client itself had sent it here."""
    told = {name: value.decode("latin-1") for name, value in scope["headers"] if name in _TOLD}
    kept = [entry for entry in scope["headers"] if not entry[0].startswith(OURS)]
    return {
        **scope,
        "headers": kept,
        "client": (told.get(CLIENT, ""), 0),
        "scheme": told.get(SCHEME, "http"),
    }


_TOLD: Final = (CLIENT, SCHEME)


def _kept(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    given = list(headers)
    named = {
        token.strip().lower()
        for name, value in given
        if name == b"connection"
        for token in value.split(b",")
    }
    return [
        (name, value)
        for name, value in given
        if name not in HOP and name not in named and not name.startswith(OURS)
    ]
