"""A client of the studio on this home that nobody can lock out: it signs a pass for each call."""

from __future__ import annotations

from collections.abc import Generator

import httpx


class Pass(httpx.Auth):
    """Bears the pass of the person at the machine, good for a minute and signed anew each time."""

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Sign, and send."""
        from memory.services import keys

        request.headers["Authorization"] = f"Bearer {keys.local_pass()}"
        yield request


def keeper(url: str) -> httpx.Client:
    """The client. Django must be set up with the home of that studio."""
    return httpx.Client(base_url=url, auth=Pass(), timeout=60)
