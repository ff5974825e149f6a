"""A provider of the studio that vaults may use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from engine.providers.spec import ProviderSpec
from engine.testing.fake_models import openai_embeddings
from engine.testing.fake_provider import Provider, serving
from engine.types import Mode
from engine.vault.errors import VaultError
from memory.models import Vault
from memory.principal import SYSTEM, Principal
from memory.services import providers
from memory.services.vaults import searching
from memory.tests.vaults import configure, fill, query, sealed

KEY: Final = "sk-of-the-lab"
QUESTION: Final = "How many days for a refund?"
EMBEDDING: Final = {"embeddingProviderModel": "lab/embedder"}


@contextmanager
def running(settings: Any, home: Path) -> Iterator[Provider]:
    """A server on loopback that embeds; no provider names it yet, and the file no service."""
    configure(settings, home, "[rag.http]\nbackoff_ms = 0\n")
    with serving() as server:
        server.respond = openai_embeddings
        yield server


def filled(principal: Principal) -> Vault:
    """A sealed vault with three documents."""
    made = sealed(principal)
    fill(principal, made)
    return made


def lab(server: Provider, kind: str = "compatible", path: str = "/v1", **fields: Any) -> None:
    """The provider ``lab``, which is that server."""
    fields = {"api_key": KEY} | fields
    address = f"http://127.0.0.1:{server.port}{path}"
    providers.create(SYSTEM, ProviderSpec("lab", kind, address, **fields))


def refused(act: Callable[[], object]) -> tuple[str, str]:
    """Code and reason of what a vault refuses."""
    with pytest.raises(VaultError) as raised:
        act()
    return raised.value.code, raised.value.reason


def near(principal: Principal, vault: Vault) -> searching.SearchView:
    """A search by meaning alone."""
    return searching.find(principal, query(vault, "refund", mode=Mode.VECTOR))
