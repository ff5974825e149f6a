"""Keys of several scopes for a run that may revoke and rotate them itself.

The driver makes them and hands their names over in the environment; ``hooks`` takes a secret for
each call, and has a key rotated, which brings a revoked one back, once its secret is refused.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import httpx

SCOPES = {
    "fuzz-everything": ["read", "write", "chat", "manage"],
    "fuzz-writer": ["read", "write"],
    "fuzz-manager": ["read", "write", "chat", "manage"],
    "fuzz-reader": ["read"],
}
"""Most calls should come through, so half of the keys may do everything."""


@dataclass(slots=True)
class Callers:
    """The keys in turn; ``keeper`` is a client of the studio that may make keys."""

    keeper: httpx.Client
    secrets: dict[str, str] = field(default_factory=dict)
    _turn: itertools.cycle[str] = field(default_factory=lambda: itertools.cycle(SCOPES))

    def next(self) -> str:
        """A secret for the next call."""
        name = next(self._turn)
        if name not in self.secrets:
            self.secrets[name] = self._fresh(name)
        return self.secrets[name]

    def refuse(self, secret: str) -> None:
        """Forget a secret that was not accepted."""
        self.secrets = {name: held for name, held in self.secrets.items() if held != secret}

    def _fresh(self, name: str) -> str:
        answer = self.keeper.post(f"/api/keys/{name}/rotate")
        if answer.status_code == 404:
            answer = self.keeper.post("/api/keys", json={"name": name, "scopes": SCOPES[name]})
        answer.raise_for_status()
        return str(answer.json()["secret"])
