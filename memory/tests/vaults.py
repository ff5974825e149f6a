"""Vaults of the tests, what lies in them, and services that answer for them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from django.db import connection

from engine.testing.fake_provider import Answer, Provider, Request, json_answer, serving
from memory import vault_wiring
from memory.models import Vault
from memory.principal import Principal
from memory.services.vaults import assets, lifecycle
from memory.services.vaults.assets import AssetDraft
from memory.services.vaults.lifecycle import VaultDraft
from memory.services.vaults.searching import SearchRequest

T = TypeVar("T")
PASSPHRASE: Final = "correct horse battery"
REFUNDS: Final = "Refunds are paid within seven days. 退款在七天内完成。"
SHIPPING: Final = "We ship worldwide; parcels arrive within a week."
WRITTEN: Final = '{"answer": "Within seven days [S1].", "citations": ["S1"]}'


def sealed(principal: Principal, name: str = "notes", **options: Any) -> Vault:
    """A sealed vault, unlocked."""
    draft = VaultDraft(name, passphrase=PASSPHRASE, **options)
    return lifecycle.create(principal, draft).vault


def opened(principal: Principal, name: str = "library", **options: Any) -> Vault:
    """A vault that is not sealed."""
    return lifecycle.create(principal, VaultDraft(name, is_sealed=False, **options)).vault


def fill(principal: Principal, vault: Vault) -> None:
    """Two cards and a memory."""
    for title, body, kind in (
        ("Refund policy", REFUNDS, "card"),
        ("Shipping", SHIPPING, "card"),
        ("", "Ana prefers parcels on Fridays.", "memory"),
    ):
        assets.put(principal, str(vault.uid), AssetDraft(body, title=title, kind=kind))


def query(vault: Vault, text: str = "refund days", **options: Any) -> SearchRequest:
    """A search of a vault."""
    return SearchRequest(str(vault.uid), text, **options)


def configure(settings: Any, home: Path, text: str) -> None:
    """Have this process read another configuration; keys and indexes are forgotten."""
    (home / vault_wiring.CONFIG_NAME).write_text(text, encoding="utf-8")
    settings.MEMORY_STUDIO_HOME = home
    vault_wiring.reset()


def service(name: str, port: int, operation: str = "v1/x") -> str:
    """The table of a service on loopback."""
    return f"""
[rag.{name}]
protocol = "compatible"
url = "http://127.0.0.1:{port}/{operation}"
model = "{name}-model"
[rag.http]
backoff_ms = 0
"""


def writes(content: str = WRITTEN) -> Callable[[Request], Answer]:
    """A service that writes this."""
    choice = {"message": {"content": content}, "finish_reason": "stop"}
    return lambda request: json_answer({"choices": [choice]})


def closing(act: Callable[[], T]) -> Callable[[], T]:
    """What a thread of its own does, which leaves no connection behind."""

    def done() -> T:
        try:
            return act()
        finally:
            connection.close()

    return done


def meanwhile(
    act: Callable[[], object], answer: Callable[[Request], Answer]
) -> Callable[[Request], Answer]:
    """A service during whose work something happens, in a thread of its own."""

    def respond(request: Request) -> Answer:
        closing(act)()
        return answer(request)

    return respond


@contextmanager
def writer(settings: Any, home: Path) -> Iterator[Provider]:
    """A generation service that is configured; it writes ``WRITTEN``."""
    with serving() as provider:
        provider.respond = writes()
        configure(settings, home, service("generation", provider.port))
        yield provider


def sent(provider: Provider) -> str:
    """Everything a service was sent."""
    bodies = [json.dumps(request.json(), ensure_ascii=False) for request in provider.requests]
    return "\n".join(bodies)
