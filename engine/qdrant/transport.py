"""The way of the official client to the network: through our own, with its policy and limits."""

from __future__ import annotations

from typing import Final

import httpx

from engine.net.client import HttpClient, Limits

SENT: Final = ("content-type", "api-key")


class PolicyTransport(httpx.BaseTransport):
    """Hands each request to the one client for outbound HTTP.

    So the address is judged, the name resolved once, the time of a whole request bounded and the
    answer's size as well; what the HTTP library would do by itself does not count.
    """

    def __init__(self, http: HttpClient, limits: Limits) -> None:
        self._http = http
        self._limits = limits

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """One request. Raises ``UrlBlocked`` or ``HttpFailed``."""
        headers = {name: request.headers[name] for name in SENT if name in request.headers}
        found = self._http.exchange(
            request.method, str(request.url), request.read(), headers, self._limits
        )
        return httpx.Response(found.status, headers=dict(found.headers), content=found.body)
