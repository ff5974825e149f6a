"""Where Qdrant is: address, key, and the name under which the live collection is known."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from engine.errors import EngineError
from engine.net.errors import UrlBlocked
from engine.net.policy import OPERATOR, check_url
from engine.qdrant.errors import QdrantFailed

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")


@dataclass(frozen=True, slots=True)
class Place:
    """A server and the alias of the live collection there."""

    url: str
    alias: str
    api_key: str = field(default="", repr=False)

    @property
    def key(self) -> str:
        """What tells this place from another one."""
        return f"{self.url} {self.alias}"


def is_name(text: str) -> bool:
    """Whether a text can be the name of a collection: letters, digits and ``. _ -``."""
    return NAME.fullmatch(text) is not None


def place_of(host: str, port: int, alias: str, api_key: str = "") -> Place:
    """The place that the settings name.

    ``host`` is a name, an address or a URL; the port counts where the URL has none. Raises
    ``QdrantFailed`` (``qdrant_blocked``) for an address that may not be called, and
    ``EngineError`` (``collection_name``).
    """
    if not is_name(alias):
        raise EngineError(
            "A collection's name holds letters, digits and . _ - only.", code="collection_name"
        )
    try:
        target = check_url(_url(host.strip(), port), OPERATOR)
    except UrlBlocked as error:
        raise QdrantFailed(str(error), code="qdrant_blocked") from error
    return Place(target.url.rstrip("/"), alias, api_key)


def _url(host: str, port: int) -> str:
    scheme, found, rest = host.partition("://")
    if not found:
        scheme, rest = "http", host
    authority, slash, path = rest.partition("/")
    is_bare_v6 = authority.count(":") > 1 and not authority.startswith("[")
    if is_bare_v6:
        authority = f"[{authority}]"
    if is_bare_v6 or not re.search(r":\d+$", authority):
        authority = f"{authority}:{port}"
    return f"{scheme}://{authority}{slash}{path}"
