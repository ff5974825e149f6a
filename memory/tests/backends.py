"""Backends for the tests of the services: a service on loopback, and the settings that name it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from engine.testing.fake_backend import KEY, FakeService
from engine.testing.fake_provider import Answer, Provider, serving
from memory.models import ApiKey, BackendCopy, Memory
from memory.principal import SYSTEM, Principal
from memory.services import settings

DOWN = Answer(drops=True)


class Brain:
    """A running service with the conventions of the HTTP backend."""

    def __init__(self, provider: Provider, service: FakeService) -> None:
        self.provider = provider
        self.service = service

    @property
    def config(self) -> dict[str, Any]:
        """How it is configured."""
        base_url = f"http://127.0.0.1:{self.provider.port}"
        return {"baseUrl": base_url, "apiKey": KEY, "allowLoopback": True, "timeout": 2000}

    @property
    def contents(self) -> list[str]:
        """What it holds, oldest first."""
        return [str(row["content"]) for row in self.service.rows.values()]

    @property
    def calls(self) -> list[str]:
        """Methods and paths of what it was asked, without queries."""
        requests = self.provider.requests
        return [f"{request.method} {request.path.partition('?')[0]}" for request in requests]

    def goes_down(self) -> None:
        """From now on every connection breaks."""
        self.provider.respond = lambda _request: DOWN

    def comes_back(self) -> None:
        """It answers again."""
        self.provider.respond = self.service

    def holds(self, content: str, owner: str, **fields: Any) -> str:
        """Put a memory into it from outside; its id."""
        own = f"own-{len(self.service.rows)}"
        row: dict[str, Any] = {
            "id": own,
            "key": own,
            "content": content,
            "type": "factual",
            "apiKeyId": owner,
        }
        row |= {"sessionId": "", "metadata": {}, "createdAt": "2026-03-01T00:00:00Z"}
        self.service.rows[own] = {**row, **fields}
        return own


@contextmanager
def brain() -> Iterator[Brain]:
    """A service that runs for a test."""
    with serving() as provider:
        service = FakeService()
        provider.respond = service
        yield Brain(provider, service)


def configure(primary: str, fallbacks: list[str] | None = None, **configs: Any) -> None:
    """Change the settings as an operator would."""
    changes: dict[str, Any] = {"backendConfigs": configs, "primaryBackend": primary}
    settings.update(SYSTEM, {**changes, "fallbackBackends": fallbacks or []})


def uid(principal: Principal) -> str:
    """Public id of the key that acts."""
    assert principal.owner is not None
    return str(ApiKey.objects.get(pk=principal.owner).uid)


def copy_of(memory: Memory, backend: str = "brain") -> BackendCopy:
    """The entry of the id map."""
    return BackendCopy.objects.get(backend=backend, memory_id=memory.pk)
