"""A request as it came: its headers, its secret, and its body within the limit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.conf import settings

from memory.asgi import Receive, Scope, bearer, header
from memory.gateway.refusals import Dialect, Refusal
from memory.services.keys import PREFIX


class Gone(Exception):
    """The client has left."""


@dataclass(frozen=True, slots=True)
class Incoming:
    """Names of ``headers`` are in lower case; repeated ones are joined."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    secret: str

    @property
    def dialect(self) -> Dialect:
        """Whose client it is: Anthropic's says so by its path or by a header."""
        is_anthropic = self.path.startswith("/v1/messages") or "anthropic-version" in self.headers
        return Dialect.ANTHROPIC if is_anthropic else Dialect.OPENAI


def incoming(scope: Scope) -> Incoming:
    """A request before its body is read."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return Incoming(
        method=scope["method"],
        path=scope["path"].rstrip("/"),
        query=scope.get("query_string", b"").decode("latin-1"),
        headers=headers,
        secret=_secret(scope),
    )


def _secret(scope: Scope) -> str:
    """The credential of either header; of two, the one that is ours.

    Anthropic's client sends both where its environment holds a token of somebody else.
    """
    found = [each for each in (bearer(scope), header(scope, b"x-api-key").strip()) if each]
    return next((each for each in found if each.startswith(PREFIX)), found[0] if found else "")


async def read_body(receive: Receive, headers: Mapping[str, str]) -> bytes:
    """The whole body. Raises ``Gone``, and ``Refusal`` for one that is too large or packed."""
    limit = settings.MEMORY_STUDIO_MAX_BODY_BYTES
    too_large = Refusal(413, "too_large", f"The body is larger than {limit} bytes.")
    announced = headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > limit:
        await discard(receive)
        raise too_large
    if headers.get("content-encoding", "identity").strip().lower() != "identity":
        await discard(receive)
        raise Refusal(415, "unsupported_encoding", "Send the body without compression.")
    body, more = bytearray(), True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Gone
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > limit:
            if more:
                await discard(receive)
            raise too_large
    return bytes(body)


async def discard(receive: Receive) -> None:
    """Take in the rest of a body: most clients read the answer only after they have sent it."""
    left, more = 2 * settings.MEMORY_STUDIO_MAX_BODY_BYTES, True
    while more and left > 0:
        message = await receive()
        left -= len(message.get("body", b""))
        more = message.get("more_body", False)
