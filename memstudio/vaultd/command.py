"""How a command on a host of several webs reaches vaultd: it answers itself, but for vaults."""

from __future__ import annotations

from typing import Final

import httpx2

from memstudio.vaultd.headers import PROOF
from memstudio.vaultd.proof import proof
from memstudio.vaultd.routing import API

TIMES: Final = {"connect": 3.0, "read": 900.0, "write": 60.0, "pool": 3.0}


class ThroughVaultd(httpx2.BaseTransport):
    """Sends requests about vaults to vaultd; what it cannot be asked goes ``here``, like the rest.

    The caller is whoever the request says; the proof only opens the door.
    """

    def __init__(self, origin: str, here: httpx2.BaseTransport) -> None:
        self._origin = httpx2.URL(origin)
        self._here = here
        self._there = httpx2.HTTPTransport()

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """The answer to one request."""
        path = request.url.path
        if path != API and not path.startswith(f"{API}/"):
            return self._here.handle_request(request)
        place = request.url.copy_with(
            scheme=self._origin.scheme, host=self._origin.host, port=self._origin.port
        )
        headers = [*request.headers.raw, (PROOF, proof())]
        sent = httpx2.Request(
            request.method,
            place,
            headers=headers,
            stream=request.stream,
            extensions={**request.extensions, "timeout": TIMES},
        )
        try:
            return self._there.handle_request(sent)
        except (httpx2.ConnectError, httpx2.ConnectTimeout):
            return self._here.handle_request(request)

    def close(self) -> None:
        """Close both ways."""
        self._there.close()
        self._here.close()
