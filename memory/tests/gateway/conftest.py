"""A gateway with one provider, whose model server is a double, and keys that may chat."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest

from engine.providers.spec import ProviderSpec
from engine.testing.fake_upstream import FakeUpstream, serving_models
from memory.gateway.mount import Gateway
from memory.models import ApiKey, Trace
from memory.principal import SYSTEM, Principal
from memory.services import keys, providers
from memory.services import settings as studio_settings
from memory.services.gateway import settings as chat_settings
from memory.tests.gateway.asgi_client import Answered, Call, call

T = TypeVar("T")
CHAT = "/v1/chat/completions"


def user(text: str, **more: Any) -> dict[str, Any]:
    """The body of a chat in which the user says something."""
    return {"model": "small", "messages": [{"role": "user", "content": text}], **more}


@dataclass(slots=True)
class World:
    """The double, and the secret of the key ``app``."""

    upstream: FakeUpstream
    secret: str
    key: ApiKey
    extra: dict[str, str] = field(default_factory=dict)

    @property
    def app(self) -> Principal:
        """Who owns the key."""
        return keys.principal_of(self.key)

    def run(self, work: Callable[[Gateway], Awaitable[T]], **parts: Any) -> T:
        """Do something with a gateway that stops afterwards, its receipts written."""

        async def live() -> T:
            gateway = Gateway(**parts)
            try:
                return await work(gateway)
            finally:
                await asyncio.to_thread(gateway.stop)

        return asyncio.run(live())

    def asks(self, path: str, body: Any = None, method: str = "POST", **headers: str) -> Call:
        """A request of the key."""
        content = b"" if body is None else body
        if not isinstance(content, bytes):
            content = json.dumps(content, ensure_ascii=False).encode()
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if "authorization" not in sent and "x-api-key" not in sent:
            sent["authorization"] = f"Bearer {self.secret}"
        return Call(method, path, content, sent)

    def say(self, path: str, body: Any = None, method: str = "POST", **headers: str) -> Answered:
        """Send one request through a gateway of its own."""
        wanted = self.asks(path, body, method, **headers)
        return self.run(lambda gateway: call(gateway, wanted))

    def switch_on(self, **chat: Any) -> None:
        """Switch memory on, with settings of chats. A busy machine has time to be late."""
        studio_settings.update(SYSTEM, {"enabled": True})
        chat_settings.update(SYSTEM, {"injectionBudgetMs": 5000, **chat})

    def receipt(self) -> Trace:
        """The one receipt there is."""
        return Trace.objects.get()


@pytest.fixture
def world(first_start: None) -> Iterator[World]:
    """Memory is off, as it is at first."""
    key, secret = keys.create(SYSTEM, "app", scopes=("chat",))
    with serving_models() as upstream:
        providers.create(SYSTEM, ProviderSpec("lab", base_url=upstream.url, api_key="up-key"))
        yield World(upstream, secret, key)
